// node:os. Its values are fixed, and do not describe the machine.

const os = {
  EOL: "\n",
  devNull: "/dev/null",
  arch: () => "wasm32",
  platform: () => "linux",
  type: () => "Linux",
  machine: () => "wasm32",
  release: () => "",
  version: () => "",
  hostname: () => "localhost",
  homedir: () => "/",
  tmpdir: () => "/tmp",
  endianness: () => "LE",
  cpus: () => [],
  availableParallelism: () => 1,
  loadavg: () => [0, 0, 0],
  uptime: () => 0,
  totalmem: () => 0,
  freemem: () => 0,
  networkInterfaces: () => ({}),
  userInfo: () => ({ uid: -1, gid: -1, username: "", homedir: "/", shell: null }),
  constants: { signals: {}, errno: {}, priority: {} },
};

export default os;
