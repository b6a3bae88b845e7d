import async from "async";
export async function run() {
  const seen = [];
  const queue = async.queue((job, done) => { seen.push(job); setTimeout(done, 1); }, 2);
  queue.push([1, 2, 3]);
  await queue.drain();
  return [seen, await async.mapLimit([1, 2, 3], 2, async (x) => x * 2), await async.waterfall([async () => 1, async (x) => x + 1]), await async.parallel({ a: (done) => done(null, 1), b: async () => 2 })];
}
