// An identity provider on loopback: node provider.mjs <directory of oidc-provider>
// It prints its issuer when it listens. For each line on stdin it creates new keys, which it
// publishes beside the old ones, and prints a line when it signs with them.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { Provider } = await import(pathToFileURL(process.argv[2] + "/node_modules/oidc-provider/lib/index.js").href);

const people = {
  ada: { org: "acme", org_roles: ["owner", "chief"] },
  bo: { org: "acme", org_roles: ["viewer"] },
  cy: { org: "other", org_roles: ["owner"] },
};
const algorithms = ["ES256", "EdDSA", "RS256", "PS256"];

function newKeys() {
  return [["ec", { namedCurve: "P-256" }], ["ed25519", {}], ["rsa", { modulusLength: 2048 }]].map(([type, options]) => ({
    use: "sig", ...generateKeyPairSync(type, options).privateKey.export({ format: "jwk" }),
  }));
}

function newProvider(issuer, keys) {
  const common = { id_token_signed_response_alg: "ES256" };
  return new Provider(issuer, {
    jwks: { keys },
    cookies: { keys: ["the provider's own"] },
    clients: [
      {
        ...common, client_id: "web", token_endpoint_auth_method: "none", grant_types: ["authorization_code"], response_types: ["code"],
        redirect_uris: ["http://127.0.0.1/callback"], application_type: "native",
      },
      ...algorithms.map((alg) => ({
        ...common, client_id: "robot-" + alg, client_secret: "of-robot-" + alg, grant_types: ["client_credentials"], response_types: [], redirect_uris: [],
      })),
    ],
    enabledJWA: { idTokenSigningAlgValues: ["ES256", "EdDSA", "RS256", "PS256"] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    extraTokenClaims: (_, token) => people[token.accountId] ?? { org: "acme", org_roles: ["admin"] },
    features: {
      devInteractions: { enabled: true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, indicator, client) => ({
          scope: "api", audience: indicator, accessTokenFormat: "jwt", jwt: { sign: { alg: client.clientId.split("-")[1] ?? "ES256" } },
        }),
      },
    },
    ttl: { AccessToken: 3600, ClientCredentials: 3600, IdToken: 3600, Session: 3600, Grant: 3600, Interaction: 3600 },
  });
}

let answer;
const server = createServer((request, response) => answer(request, response));
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  let keys = newKeys();
  answer = newProvider(issuer, keys).callback();
  console.log(issuer);
  createInterface(process.stdin)
    .on("line", () => {
      keys = [...newKeys(), ...keys];
      answer = newProvider(issuer, keys).callback();
      console.log("new keys");
    })
    .on("close", () => process.exit());
});
