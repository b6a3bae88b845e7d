using Workerd = import "/workerd/workerd.capnp";

# The address of the socket is set on the command line.
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);

const worker :Workerd.Worker = (
  modules = [
    (name = "worker", esModule = embed "workerd.mjs"),
    (name = "handlers.mjs", esModule = embed "handlers.mjs"),
  ],
  compatibilityDate = "2026-01-01",
);
