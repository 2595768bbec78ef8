// A road to a server on which all takes a fraction of a millisecond: in a process of its own, as timers here know no less than a whole one. Where there is
// no compiler it is the proxy that can be cut, which looks at the clock again and again instead, and takes the time of what is measured.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { compileC } from "./c-programs.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

export interface SlowLink extends AsyncDisposable {
  /** The address with this road's port. */
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
