// A connection to a server with a delay of a fraction of a millisecond. It is a separate process,
// because Node's timers have a resolution of 1 ms. Without a compiler, the TCP proxy is used, which
// polls the clock and takes CPU time from the measured processes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { compileC } from "./c-programs.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

export interface SlowLink extends AsyncDisposable {
  /** The URL with the port of this proxy. */
  through(url: string): string;
}

/** `ms`: each way. */
export async function startSlowLink({ port, ms }: { port: number; ms: number }): Promise<SlowLink> {
  const program = compileC("slow-road.c");
  if (!program) {
    const proxy = await startTcpProxy({ port });
    proxy.delay(ms);
    return proxy;
  }
  const road = spawn(program.file, [`${port}`, `${Math.round(ms * 1_000)}`], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const over = once(road, "exit");
  const [own] = (await Promise.race([
    once(road.stdout, "data"),
    over.then(() => Promise.reject(new Error("There is no road: it ended before it began."))),
  ])) as [Buffer];
  return {
    through: (url) =>
      Object.assign(new URL(url), { hostname: "127.0.0.1", port: `${own}`.trim() }).href,
    async [Symbol.asyncDispose]() {
      road.stdin.end();
      await over;
      program[Symbol.dispose]();
    },
  };
}
