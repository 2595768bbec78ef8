// A blocked event loop, and a shutdown that hangs: the process ends, and reports where it was.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";

/** Blocks on request, and never settles a promise on request. */
const HANGING = `
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { defineMiddleware } from "tollgate/plugin";
const note = (what) => writeFileSync(join(import.meta.dirname, what), "");
export default defineMiddleware({
  api: 1, name: "hanging", summary: "Stands", sends: "nowhere",
  setup: () => ({
    admit(x) {
      if (x.headers["x-hang"] === "loop") standStill(x);
    },
    settle(x) {
      if (x.headers["x-hang"] === "settle") return note("settles"), new Promise(() => {});
    },
  }),
});
function standStill(x) {
  note("stands");
  // It uses no CPU time, so it blocks equally long on a busy machine.
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (;;) if (Atomics.wait(cell, 0, 0, 10) === "not-equal") return x.id;
}
`;
const yaml = (more: string) => `${more}
store: memory
frontends: [chat-completions]
middleware: [{ use: auth, with: { anonymous: true } }, ./hanging.ts, usage]
providers: { demo: { use: demo } }
`;
const start = (more = "") => startDaemon({ yaml: yaml(more), files: { "hanging.ts": HANGING } });
const ask = (at: Daemon, hang = "") =>
  fetch(`${at.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-hang": hang, connection: "close" },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hi" }] }),
  }).then(
    (answer) => answer.text().then(() => answer.status),
    () => 0,
  );
/** Waits until the middleware has reached this point. */
const noted = ({ dir }: Daemon, what: string) => until(() => existsSync(join(dir, what)));
const STOOD = /the event loop was blocked for 10 s/;

/** Started one after another. They block at the same time. */
const starting = ["", "workers: 2", "shutdown: 1s", "shutdown: 1s", "shutdown: 1s"];
const ready: Daemon[] = [];
beforeAll(async () => {
  for (const more of starting) ready.push(await start(more));
});
afterAll(async () => {
  for (const each of ready) await each[Symbol.asyncDispose]();
});

describe.concurrent("a process with a blocked event loop", () => {
  it("ends itself if it is the only one, and reports the location and the request", async () => {
    const at = ready[0]!;
    expect(await ask(at)).toBe(200);
    void ask(at, "loop");
    await at.exit;
    const line = at.log.find(({ msg }) => STOOD.test(msg))!;
    expect(line).toMatchObject({ level: "error", pid: at.pid });
    expect((line["at"] as string[])[0]).toMatch(/^standStill .*hanging\.ts:\d+$/);
    expect(line["requests"]).toEqual([expect.stringMatching(/^\w{16}$/)]);
  });

  it("is replaced if it is one of two, and the other one serves during this time", async () => {
    const at = ready[1]!;
    for (let i = 0; i < 3; i++) void ask(at, "loop").catch(() => {});
    await at.line(({ msg }) => STOOD.test(msg));
    await at.line(({ msg }) => msg.includes("worker replaced"));
    await until(async () => (await ask(at)) === 200);
  });

  it("ignores signals, and ends nevertheless", async () => {
    const at = ready[2]!;
    void ask(at, "loop");
    await noted(at, "stands");
    at.kill("SIGTERM");
    await at.exit;
  });

  it("is not assumed if the process was suspended, as when a machine sleeps", async () => {
    const [at, other] = [ready[3]!, ready[0]!];
    void ask(at, "settle");
    await noted(at, "settles");
    at.kill("SIGSTOP");
    // It is suspended until another one is ended for blocking.
    await other.exit;
    at.kill("SIGCONT");
    expect(await ask(at)).toBe(200);
    // The watchdog has checked since then, because it ends processes that hang.
    at.kill("SIGTERM");
    await at.exit;
    expect(at.log.some(({ msg }) => /did not exit in time/.test(msg))).toBe(true);
    expect(at.log.some(({ msg }) => STOOD.test(msg))).toBe(false);
  });
});

it.concurrent("ends soon after the drain time, also if the shutdown hangs", async () => {
  const at = ready[4]!;
  void ask(at, "settle");
  await noted(at, "settles");
  at.kill("SIGTERM");
  await at.exit;
  expect(at.log.some(({ msg }) => /did not exit in time/.test(msg))).toBe(true);
});
