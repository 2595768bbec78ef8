// `tollgate reload`: its output and exit codes, with all processes changed or none.
import { afterAll, beforeAll, expect, test } from "vitest";
import { startDaemon, type Daemon } from "../kit/process/daemon.ts";
import { runTollgate } from "../kit/process/command-line.ts";

const yaml = (more = "") => `workers: 2\nproviders:\n  demo: { use: demo }\n${more}`;
let daemon: Daemon;
beforeAll(async () => {
  daemon = await startDaemon({ yaml: yaml(), args: ["--no-watch"] });
});
afterAll(() => daemon?.[Symbol.asyncDispose]());

const ask = async (model: string) => {
  const res = await fetch(`${daemon.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${daemon.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello." }] }),
  });
  await res.arrayBuffer();
  return res.status;
};
const asked = (model: string) => Promise.all(Array.from({ length: 8 }, () => ask(model)));

test("exits with 0 and reports if nothing changed", async () => {
  const { code, out, err } = await runTollgate(daemon, ["reload"]);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toBe("The config is unchanged. Generation 1 stays in use.\n");
});

test("when it returns, every process uses the new file", async () => {
  expect(await asked("mine")).toEqual(Array.from({ length: 8 }, () => 404));
  await daemon.write(yaml("models:\n  mine: demo/echo\n"));
  const { code, out } = await runTollgate(daemon, ["reload"]);
  expect([code, out]).toEqual([0, "Reloaded. Generation 2 is in use.\n"]);
  expect(await asked("mine")).toEqual(Array.from({ length: 8 }, () => 200));
});

test("prints errors with their lines, changes nothing, and exits with 78", async () => {
  await daemon.write(yaml("modles: {}\n"));
  const { code, out, err } = await runTollgate(daemon, ["reload"]);
  expect(code).toBe(78);
  expect(out).toMatch(/gateway\.yaml:4:1 {2}error {2}.*modles/);
  expect(err).toBe("Rejected: 1 error. Generation 2 stays in use.\n");
  const json = await runTollgate(daemon, ["reload", "--json"]);
  expect([json.code, JSON.parse(json.out)]).toMatchObject([78, { ok: false, generation: 2 }]);
  expect(await asked("mine")).toEqual(Array.from({ length: 8 }, () => 200));
});

test("names changes that need a restart, and exits with 1", async () => {
  await daemon.write(yaml("state_dir: ./elsewhere\n"));
  const { code, err } = await runTollgate(daemon, ["reload", "--state-dir", daemon.stateDir]);
  expect([code, err]).toEqual([
    1,
    "Rejected: state_dir cannot change without a restart. Restart the gateway to apply the change. Generation 2 stays in use.\n",
  ]);
});

test("exits with 1 if no gateway is running", async () => {
  await daemon.write(yaml());
  await daemon.stop();
  const { code, out } = await runTollgate(daemon, ["reload", "--json"]);
  expect([code, JSON.parse(out)]).toMatchObject([1, { error: { code: "not_running" } }]);
});
