// Whatever text a client writes in any position, no codec processes its characters one by one: all
// work on a request costs a few passes of the engine's own JSON. Every exported protocol is tested,
// in the positions of its allowlist.
import { measure } from "../../kit/process/cpu-time.ts";
import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { getFault, type JsonObject, type Operation, type Protocol } from "tollgate/plugin";
import { findReferences } from "tollgate/protocols/references";
import { createCallContext, createOutgoing, encodeOutgoing } from "tollgate/testing";
import { rejectAmbiguousKeys } from "../../../src/pipeline/stages/ambiguous-keys.ts";
import { SENT } from "../../pipeline/privacy/client-requests.ts";
import { mixed, namesIn, reviewed, stringsIn, wordsOf, type Place } from "./places.ts";
import { bodies } from "./requests.ts";

const ROOT = new URL("../../../src/protocols/", import.meta.url);

/** Every protocol that a folder creates without arguments. */
async function exported(): Promise<Map<string, Protocol<Operation>>> {
  const found = new Map<string, Protocol<Operation>>();
  for (const entry of readdirSync(ROOT, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const files = readdirSync(new URL(`${entry.name}/`, ROOT));
    if (!files.includes("index.ts")) continue;
    const all = (await import(new URL(`${entry.name}/index.ts`, ROOT).href)) as object;
    for (const [name, make] of Object.entries(all) as [string, unknown][]) {
      const made = protocolFrom(make);
      if (made) found.set(name, made);
    }
  }
  return found;
}

function protocolFrom(make: unknown): Protocol<Operation> | undefined {
  if (typeof make !== "function" || make.length > 1) return undefined;
  try {
    const made = (make as () => Partial<Protocol<Operation>>)();
    return made?.id !== undefined && made.operationSpec && made.client
      ? (made as Protocol<Operation>)
      : undefined;
  } catch {
    return undefined;
  }
}

const protocols = await exported();
/** The first of each name. */
const served = [...protocols].filter(
  ([name, { id, server }]) =>
    server && [...protocols].find(([, one]) => one.id === id)![0] === name,
);

/** A first measurement, and a longer one for suspects. */
const [SMALL, LARGE] = [4 * 1024, 256 * 1024];
/**
 * JSON passes that one stage may cost. The worst native work costs less than half. A callback per
 * character costs a hundred.
 */
const PASSES = 20;
const small = mixed(SMALL);
const large = mixed(LARGE);

type Stage = readonly [name: string, run: (body: JsonObject) => unknown];

/** All code that reads a request before it is sent. */
function stagesOf({ server, client, operationSpec }: Protocol<Operation>): Stage[] {
  const targets = [...protocols].filter(([, one]) => one.operationSpec.name === operationSpec.name);
  return [
    ["keys", (body) => rejectAmbiguousKeys(body, server!.schema)],
    ["look", (body) => findReferences(body)],
    ["survey", (body) => server!.analyze(body)],
    ["conversation", (body) => server!.conversationKey?.(body)],
    ["prepare", (body) => client!.prepare?.(createOutgoing(body), createCallContext())],
    ["request", (body) => server!.decodeRequest(body, "generate")],
    ...targets.map(([name, target]): Stage => [
      `to ${name}`,
      (body) =>
        encodeOutgoing(target.client!, server!.decodeRequest(body, "generate"), createCallContext())
          .body,
    ]),
  ];
}

const measured = (run: () => unknown) =>
  measure(() => {
    try {
      run();
    } catch (error) {
      if (!getFault(error)) throw error;
    }
  });

const pass = (body: JsonObject) => () => JSON.parse(JSON.stringify(body)) as unknown;
const least = (of: () => number): number => Math.min(of(), of(), of());

/** Enough CPU time that the ticks of its clock do not matter. */
function mean(run: () => unknown): number {
  let [all, times] = [0, 0];
  while (all < 24 && times < 20) {
    all += measured(run).processor;
    times++;
  }
  return all / times;
}

/** Reason if it is too slow. Undefined otherwise. */
function slow(stages: readonly Stage[], place: Place, k: number): string | undefined {
  const body = place.body(small[k]!);
  const all = () => {
    for (const [, run] of stages) measured(() => run(body));
  };
  if (measure(all).elapsed < 0.4) return undefined;
  const allowed = (PASSES / 2) * least(() => measured(pass(body)).elapsed);
  const whole = place.body(large[k]!);
  let yard: number | undefined;
  for (const [name, run] of stages) {
    if (least(() => measured(() => run(body)).elapsed) < allowed) continue;
    yard ??= mean(pass(whole));
    const took = mean(() => run(whole));
    if (took > PASSES * yard)
      return `${place.at} ${large[k]!.slice(0, 24)}… ${name}: ${took.toFixed(1)} ms, and a pass of JSON is ${yard.toFixed(1)} ms`;
  }
  return undefined;
}

const once = <T>(all: Iterable<T>): T[] => [...all];

describe.each(served)("%s", (_name, protocol) => {
  const { id, client, operationSpec } = protocol;
  const start = JSON.parse(
    JSON.stringify(client!.encodeRequest(operationSpec.sampleRequest("m"), createCallContext())),
  ) as JsonObject;
  const corpus: JsonObject[] = [
    start,
    ...SENT.filter(([, of]) => of === id).map(([, , body]) => body as JsonObject),
    ...Object.values(bodies[id] ?? {}).map((made) => made(2)),
  ];
  const stages = stagesOf(protocol);

  it("has positions to try", () => expect(once(stringsIn(corpus)).length).toBeGreaterThan(0));

  it("decodes a text anywhere at the speed of JSON", () => {
    const wrong: string[] = [];
    const all = [...stringsIn(corpus), ...reviewed(protocol, start)];
    // Each position with two of the texts. Neighboring positions have the others.
    for (const [i, place] of all.entries())
      for (const k of [i % small.length, (i * 3 + 1) % small.length]) {
        const why = slow(stages, place, k);
        if (why) wrong.push(why);
      }
    expect(wrong).toEqual([]);
  });

  it("decodes equivalent values anywhere at the speed of JSON", () => {
    const wrong: string[] = [];
    for (const [i, place] of once(wordsOf(start)).entries())
      for (const k of place.at.endsWith("]") ? [1, i % small.length] : small.keys()) {
        const why = slow(stages, place, k);
        if (why) wrong.push(why);
      }
    expect(wrong).toEqual([]);
  });

  it("decodes names anywhere at the speed of JSON", () => {
    const wrong: string[] = [];
    for (const place of namesIn(corpus)) {
      const why = slow(stages, place, 0);
      if (why) wrong.push(why);
    }
    expect(wrong).toEqual([]);
  });
});
