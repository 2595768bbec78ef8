// L6, innocence: an import does nothing, a setup calls no upstream, and nothing is left when it is over.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { flagsOfOurs } from "../../lib/debugger.ts";
import { check, type Check } from "../check.ts";
import { context, type TestContext } from "../context.ts";
import { freeze } from "../freeze.ts";
import { watch } from "../leaks.ts";
import type { Subject } from "./subject.ts";

/** The laws that hold for every kind of plugin: what an import, a setup and an end may leave behind. */
export function innocence(subject: Subject): Check[] {
  const { module } = subject;
  return [
    ...(module === undefined
      ? []
      : [check("an import does nothing", () => importing(module, subject.definition.name))]),
    check("setup calls no upstream and changes nothing it was given", () => quiet(subject)),
    check("nothing survives its end", () => lasting(subject)),
    check("two generations live side by side", () => twice(subject)),
  ];
}

/** Runs a plugin's setup with frozen options, and remembers what it logs. */
export async function setUp(
  { definition, options, heard, fetch }: Subject,
  lent: TestContext = context({ id: `test.${definition.name}`, ...(fetch && { fetch }) }),
): Promise<{ plugin: any; lent: TestContext }> {
  try {
    const setup = definition.setup as (options: unknown, ctx: unknown) => unknown;
    return { plugin: await setup(freeze(structuredClone(options)), lent.ctx), lent };
  } catch (error) {
    heard.push(error);
    await lent.end();
    throw error;
  } finally {
    heard.push(...lent.logs);
  }
}

/** A check of what a plugin's setup gave; what it logs and throws meanwhile is remembered. */
export const running =
  <T>(subject: Subject) =>
  (name: string, run: (plugin: T, of: Subject) => unknown): Check =>
    check(name, async () => {
      const { plugin, lent } = await setUp(subject);
      try {
        await run(plugin as T, subject);
      } catch (error) {
        subject.heard.push(error);
        throw error;
      } finally {
        subject.heard.push(...lent.logs);
        await lent.end();
      }
    });

/** In a process of its own, where nothing else keeps the loop alive or writes a word. */
function importing(module: string, name: string): Promise<void> {
  const script = `
    const before = new Set(Reflect.ownKeys(globalThis)), listeners = process.eventNames().length;
    const { default: definition } = await import(${JSON.stringify(module)});
    if (!definition) throw new Error("There is no default export.");
    if (definition.name !== ${JSON.stringify(name)}) throw new Error("It is another plugin: " + definition.name);
    const left = process.getActiveResourcesInfo().filter((one) => !/^(FSReq|CloseReq|TTY|Pipe|Immediate|MessagePort)/i.test(one));
    if (left.length > 0) throw new Error("The import left this open: " + left.join(", "));
    const fresh = Reflect.ownKeys(globalThis).filter((key) => !before.has(key));
    if (fresh.length > 0) throw new Error("The import put this on globalThis: " + fresh.map(String).join(", "));
    if (process.eventNames().length > listeners) throw new Error("The import listens to the process: " + process.eventNames().join(", "));
    process.stdout.write("innocent");`;
  return new Promise((resolve, reject) => {
    const args = [...flagsOfOurs(), "--input-type=module", "--eval", script];
    execFile(process.execPath, args, { timeout: 20_000 }, (error, out, err) => {
      if (error) return reject(new Error(/Error: (.+)/.exec(err)?.[1] ?? `${err}${error.message}`));
      if (out !== "innocent" || err !== "")
        return reject(new Error(`The import prints: ${out.replace("innocent", "")}${err}`));
      resolve();
    });
  });
}

async function quiet(subject: Subject): Promise<void> {
  const globals = new Set(Reflect.ownKeys(globalThis));
  const { lent } = await setUp(subject);
  assert.deepEqual(
    lent.fetched,
    [],
    "setup calls no upstream: what a plugin needs of one it asks later",
  );
  await lent.end();
  const fresh = Reflect.ownKeys(globalThis).filter((key) => !globals.has(key));
  assert.deepEqual(fresh, [], "setup puts nothing on globalThis");
}

async function lasting(subject: Subject): Promise<void> {
  const watching = watch();
  try {
    const listeners = processListeners();
    const { lent } = await watching.run(() => setUp(subject));
    // What begins a little later counts as well.
    await watching.run(() => sleep(20));
    await watching.run(() => lent.end());
    assert.deepEqual(await watching.held(), [], "this was still open after dispose");
    assert.equal(processListeners(), listeners, "listeners of the process are given back");
  } finally {
    watching.stop();
  }
}

const processListeners = (): number =>
  process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0);

/** As at a reload: the new one is there before the old one goes. */
async function twice(subject: Subject): Promise<void> {
  const first = await setUp(subject);
  const second = await setUp(subject);
  await first.lent.end();
  await second.lent.end();
}
