// Prints each count of good notes, and each error. It ends when its input does.
import { createClient } from "./out/client.js";

const client = createClient({ baseUrl: process.env.URL, apiKey: process.env.KEY });
const print = (...words) => console.log(words.join(" "));
const stop = client.watch.countMood({ params: { mood: "good" }, onError: (error, ended) => print(error.status, ended) }, ({ count }) => print("good", count));
process.stdin.resume().on("end", stop);
