// Detects whether a middleware keeps text of private requests. It runs the hooks on a private
// request with a unique text, then searches the plugin's folder and the whole memory of this
// process for it.
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { getHeapSnapshot } from "node:v8";
import type { ChatRequest } from "../../model/request.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { Hooks } from "../../plugin/middleware.ts";
import { createTestContext, type LogLine, type TestContext } from "../context.ts";
import { createOutgoing } from "../outgoing.ts";
import * as fakes from "../fakes.ts";

const { module, options } = JSON.parse(process.argv[2]!) as { module: string; options: object };

/**
 * The unique text, kept in a Buffer outside of the heap. If the heap contains it, the plugin has
 * kept it.
 */
const canary = Buffer.from(`canary${randomBytes(12).toString("hex")}`);
const found: string[] = [];

/** Runs the hooks. When it returns, all text that it uses can be garbage-collected. */
async function runHooks(hooks: Hooks): Promise<void> {
  const words = canary.toString();
  const request: ChatRequest = {
    ...(fakes.exchange().request as ChatRequest),
    turns: [{ role: "user", blocks: [{ type: "text", text: `${words} Hello` }] }],
  };
  const x = fakes.exchange({
    identity: { id: "ann" },
    privacy: "required",
    request,
    body: { model: "provider/model", messages: [{ role: "user", content: `${words} Hello` }] },
  });
  const call = fakes.call({ exchange: x });
  const quietly = async (work: () => unknown) => {
    try {
      await work();
    } catch {
      // Other checks cover the errors that a hook may throw.
    }
  };
  await quietly(() => hooks.edit?.(x));
  await quietly(() => hooks.rewrite?.(request, x));
  await quietly(() => hooks.inspect?.(request, x));
  await quietly(() => hooks.route?.([fakes.candidate()], x));
  await quietly(() => hooks.charge?.(call));
  await quietly(() => hooks.prepare?.(createOutgoing({ ...x.body }), call));
  await quietly(() => hooks.attempt?.(call, async () => fakes.reply()));
  const events: ModelEvent[] = [
    { type: "start" },
    { type: "open", index: 0, block: { type: "text" } },
    { type: "delta", index: 0, text: `${words} there` },
    { type: "close", index: 0 },
    { type: "finish", reason: "stop" },
  ];
  await quietly(() =>
    events.forEach(
      hooks.event?.(
        call,
        () => {},
        () => {},
      ) ?? (() => {}),
    ),
  );
  await quietly(() => events.forEach(hooks.watch?.(call, () => {}) ?? (() => {})));
  await quietly(() => hooks.settle?.(x, fakes.outcome()));
}

function searchFolder(folder: string): void {
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const file = join(folder, name);
    if (statSync(file).isFile() && readFileSync(file).includes(canary))
      found.push(`the file ${name} in its state directory`);
  }
}

/** Whether the heap contains the text, which may cross the border of two chunks. */
async function isInMemory(): Promise<boolean> {
  let rest = Buffer.alloc(0);
  for await (const chunk of getHeapSnapshot()) {
    const piece = Buffer.concat([rest, chunk as Buffer]);
    if (piece.includes(canary)) return true;
    rest = Buffer.from(piece.subarray(-canary.length));
  }
  return false;
}

async function run(lent: TestContext): Promise<void> {
  const { default: definition } = (await import(module)) as {
    default: { setup(options: unknown, ctx: unknown): Hooks | Promise<Hooks> };
  };
  const hooks = await definition.setup(options, lent.ctx);
  await runHooks(hooks);
  await new Promise((done) => setTimeout(done, 50));
  searchFolder(lent.ctx.stateDir());
  if (lent.logs.some((line) => JSON.stringify(line, toJsonValue).includes(canary.toString())))
    found.push("the log");
  (lent.logs as LogLine[]).length = 0;
  for (let n = 0; n < 3; n++) {
    globalThis.gc?.();
    await new Promise((done) => setImmediate(done));
  }
  if (await isInMemory()) found.push("memory");
  // Keep the hooks reachable until the search has ended.
  Reflect.set(globalThis, "~hooks", hooks);
}

const toJsonValue = (_key: string, value: unknown): unknown =>
  typeof value === "bigint" ? `${value}` : value;

await using testContext = createTestContext();
await run(testContext);
process.stdout.write(JSON.stringify(found), () => process.exit(0));
