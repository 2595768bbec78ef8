// Checks side effects: an import has no effects, a setup calls no upstream, and no resources remain
// after disposal.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { childProcessFlags, NO_DEBUGGER } from "../../lib/disable-debugger.ts";
import { createCheck, type Check } from "../check.ts";
import { deepFreeze } from "../freeze.ts";
import { createTestContext, type TestContext } from "../context.ts";
import { watchResources } from "../resource-leaks.ts";
import type { ConformanceSubject } from "./subject.ts";
import { fileURLToPath } from "node:url";

/**
 * Returns the checks for every kind of plugin: resources that remain after an import, a setup, and
 * a disposal.
 */
export function sideEffectChecks(subject: ConformanceSubject): Check[] {
  const { module } = subject;
  return [
    ...(module === undefined
      ? []
      : [
          createCheck("the import has no side effects", () =>
            checkImport(module, subject.definition.name),
          ),
        ]),
    createCheck("setup calls no upstream and changes none of its inputs", () =>
      checkNoUpstreamCalls(subject),
    ),
    createCheck("dispose releases all resources", () => checkNothingLeft(subject)),
    createCheck("two instances can run at the same time", () => checkReload(subject)),
  ];
}

/** Runs a plugin's setup with frozen options, and records the logged lines. */
export async function setUpPlugin(
  { definition, options, observed, fetch }: ConformanceSubject,
  lent: TestContext = createTestContext({ id: `test.${definition.name}`, ...(fetch && { fetch }) }),
): Promise<{ plugin: any; lent: TestContext }> {
  try {
    const setup = definition.setup as (options: unknown, ctx: unknown) => unknown;
    return { plugin: await setup(deepFreeze(structuredClone(options)), lent.ctx), lent };
  } catch (error) {
    observed.push(error);
    await lent.end();
    throw error;
  } finally {
    observed.push(...lent.logs);
  }
}

/**
 * Creates a check of the object that a plugin's setup returned. Logs and errors during the check
 * are recorded.
 */
export const createSetupCheck =
  <T>(subject: ConformanceSubject) =>
  (name: string, run: (plugin: T, of: ConformanceSubject) => unknown): Check =>
    createCheck(name, async () => {
      const { plugin, lent } = await setUpPlugin(subject);
      try {
        await run(plugin as T, subject);
      } catch (error) {
        subject.observed.push(error);
        throw error;
      } finally {
        subject.observed.push(...lent.logs);
        await lent.end();
      }
    });

/**
 * Imports the plugin in a separate process, where no other code keeps the event loop running or
 * writes output.
 */
function checkImport(module: string, name: string): Promise<void> {
  const script = `
    const before = new Set(Reflect.ownKeys(globalThis)), listeners = process.eventNames().length;
    const { default: definition } = await import(${JSON.stringify(module)});
    if (!definition) throw new Error("The module has no default export.");
    if (definition.name !== ${JSON.stringify(name)}) throw new Error("The module exports another plugin: " + definition.name);
    const left = process.getActiveResourcesInfo().filter((one) => !/^(FSReq|CloseReq|TTY|Pipe|Immediate|MessagePort)/i.test(one));
    if (left.length > 0) throw new Error("The import left this open: " + left.join(", "));
    const fresh = Reflect.ownKeys(globalThis).filter((key) => !before.has(key));
    if (fresh.length > 0) throw new Error("The import put this on globalThis: " + fresh.map(String).join(", "));
    if (process.eventNames().length > listeners) throw new Error("The import added listeners to process: " + process.eventNames().join(", "));
    process.stdout.write("innocent");`;
  return new Promise((resolve, reject) => {
    const args = [...childProcessFlags(), "--input-type=module", "--eval", script];
    execFile(process.execPath, args, { timeout: 20_000 }, (error, out, err) => {
      if (error) return reject(new Error(/Error: (.+)/.exec(err)?.[1] ?? `${err}${error.message}`));
      if (out !== "innocent" || err !== "")
        return reject(new Error(`The import prints: ${out.replace("innocent", "")}${err}`));
      resolve();
    });
  });
}

async function checkNoUpstreamCalls(subject: ConformanceSubject): Promise<void> {
  const globals = new Set(Reflect.ownKeys(globalThis));
  const { lent } = await setUpPlugin(subject);
  assert.deepEqual(
    lent.fetchedUrls,
    [],
    "setup must not call an upstream: call it later, when it is needed",
  );
  await lent.end();
  const fresh = Reflect.ownKeys(globalThis).filter((key) => !globals.has(key));
  assert.deepEqual(fresh, [], "setup must not add properties to globalThis");
}

async function checkNothingLeft(subject: ConformanceSubject): Promise<void> {
  const watching = watchResources();
  try {
    const listeners = countProcessListeners();
    const { lent } = await watching.run(() => setUpPlugin(subject));
    // Resources that are created shortly afterwards are counted too.
    await watching.run(() => sleep(20));
    await watching.run(() => lent.end());
    assert.deepEqual(
      await watching.openResources(),
      [],
      "these resources were still open after dispose",
    );
    assert.equal(
      countProcessListeners(),
      listeners,
      "dispose must remove the plugin's process listeners",
    );
  } finally {
    watching.stop();
  }
}

const countProcessListeners = (): number =>
  process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0);

/** As in a reload, the new instance is created before the old instance is disposed of. */
async function checkReload(subject: ConformanceSubject): Promise<void> {
  const first = await setUpPlugin(subject);
  const second = await setUpPlugin(subject);
  await first.lent.end();
  await second.lent.end();
}

// Checks that a plugin uses only its context and the access that it declares in `needs`. It runs in
// a separate process, which observes each access.

/** Timeout of a setup in that process, in milliseconds. The gateway itself allows 10 s. */
const SETUP_TIMEOUT_MS = 60_000;

/** Returns no checks if the module of the plugin is unknown. */
export const needsChecks = ({ module, options }: ConformanceSubject): Check[] =>
  module === undefined
    ? []
    : [
        createCheck(
          "uses only resources that the context provides or that needs declares",
          async () => {
            const touched = JSON.parse(
              await runScript("access-probe", JSON.stringify({ module, options })),
            ) as string[];
            assert.deepEqual(
              touched,
              [],
              `the plugin's import or setup accesses ${touched.join(", ")}: use ctx.env, ctx.readFile, or ctx.fetch, and declare the resource in needs`,
            );
          },
        ),
      ];

/**
 * Runs a script of this folder with these arguments and returns its output. Rejects with its error
 * output.
 */
export function runScript(script: string, ...words: readonly string[]): Promise<string> {
  const file = fileURLToPath(
    new URL(`./${script}${import.meta.filename.slice(-3)}`, import.meta.url),
  );
  return new Promise((resolve, reject) =>
    execFile(
      process.execPath,
      [NO_DEBUGGER, ...importFlags(), "--expose-gc", file, ...words],
      { timeout: SETUP_TIMEOUT_MS, maxBuffer: 1 << 26 },
      (error, out, err) =>
        error
          ? reject(new Error(/Error: (.+)/.exec(err)?.[1] ?? `${err}${error.message}`))
          : resolve(out),
    ),
  );
}

/** Returns the flags that control imports. A test runner's own flags do not apply to a script. */
const importFlags = (): string[] =>
  process.execArgv.filter((flag) => /^(--conditions=|-C)/.test(flag));
