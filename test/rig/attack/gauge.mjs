// Preloaded into the gateway (`node --import`). It reports how long the event loop was blocked, in
// CPU time, so that other load does not count, and the memory after a garbage collection.
import { createServer } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";

const port = Number(process.env.ATTACK_GAUGE);
if (isMainThread && port > 0) {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc");
  let worst = 0;
  let since = 0;
  const cpu = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let [at, used] = [performance.now(), cpu()];
  // The same work each time: its current cost compared with its minimum shows how much other load
  // slows this process down.
  const text = Buffer.alloc(4_000_000, "words \u00e9 ");
  const reference = () => {
    const before = cpu();
    text.toString("utf8").indexOf("\u0000");
    return cpu() - before;
  };
  const look = () => {
    const [now, spent] = [performance.now(), cpu()];
    worst = Math.max(worst, Math.min(now - at, spent - used));
    [at, used] = [now, spent];
  };
  const turn = () => {
    look();
    setTimeout(turn, 2).unref();
  };
  turn();
  createServer((req, res) => {
    look();
    const held = worst;
    const all = cpu();
    const spent = all - since;
    if (req.url === "/settle") for (let i = 0; i < 3; i++) gc();
    const { rss, heapUsed, external } = process.memoryUsage();
    const same = reference();
    [at, used] = [performance.now(), cpu()];
    worst = 0;
    since = cpu();
    res.setHeader("connection", "close");
    res.end(JSON.stringify({ held, spent, rss, live: heapUsed + external, reference: same }));
  })
    .listen(port, "127.0.0.1")
    .unref();
}
