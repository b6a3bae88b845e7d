import { Octokit } from "@octokit/core";
export async function run() {
  const seen = [];
  const octokit = new Octokit({ auth: "token", request: { fetch: async (url, init) => { seen.push([url, init.method, init.headers.authorization]); return Response.json({ name: "repo" }); } } });
  const { data, status } = await octokit.request("GET /repos/{owner}/{repo}", { owner: "a", repo: "b" });
  return [data, status, seen];
}
