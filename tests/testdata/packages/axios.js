import axios from "axios";

export async function run() {
  const adapter = async (config) => ({ data: JSON.stringify({ sent: config.data, to: axios.getUri(config) }), status: 200, statusText: "OK", headers: {}, config });
  const { data } = await axios.create({ baseURL: "https://api.example/v1", adapter }).post("/items", { a: 1 }, { params: { q: "x y", n: [1, 2] } });
  return data;
}
