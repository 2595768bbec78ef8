// A member that no codec knows, anywhere in an upstream's response: it is forwarded in passthrough
// mode. In translated mode it is omitted, or kept in opaque content. Other content is decoded as
// without it.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { collectResponse, type ClientHalf, type Operation, type ModelEvent } from "tollgate/plugin";
import {
  createResponseContext,
  createCallContext,
  decode,
  decodeWhole,
  withoutUndefined,
  readRecordings,
  runRelay,
} from "tollgate/testing";
import { chats, upstreams } from "./generators/codecs.ts";
import { NAME, places, visited, type Path } from "./generators/unknown-members.ts";
import { trialCount } from "../kit/law-effort.ts";

const RUNS = trialCount(300);

interface Recorded {
  readonly name: string;
  readonly stream: boolean;
  readonly lines: readonly string[];
  /** Every position of an additional member: the line, and the place in it. */
  readonly places: readonly { readonly line: number; readonly at: Path }[];
}

const DATA = /^data: ?(?=\{)/;

function recorded(spoken: string): Recorded[] {
  const all = readRecordings(new URL(`../fixtures/recordings/${spoken}`, import.meta.url));
  return all.flatMap(({ name, status, headers, body }) => {
    if (status !== 200) return [];
    const stream = /event-stream/.test(String(headers["content-type"]));
    const lines = stream ? String(body).split("\n") : [String(body)];
    const found = lines.flatMap((text, line) => {
      const json = stream ? text.replace(DATA, "") : text;
      return json.startsWith("{") && !LONG.test(json)
        ? places(parsed(json)).map((at) => ({ line, at }))
        : [];
    });
    return found.length === 0 ? [] : [{ name, stream, lines, places: found }];
  });
}

/** Numbers that JavaScript cannot represent would change when they are encoded again. */
const LONG = /\d{16}/;

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function joined({ lines, stream }: Recorded, visit?: { line: number; at: Path }): Buffer {
  const written = lines.map((text, line) => {
    if (line !== visit?.line) return text;
    const head = stream ? (DATA.exec(text)?.[0] ?? "") : "";
    const tail = text.endsWith("\r") ? "\r" : "";
    return head + JSON.stringify(visited(JSON.parse(text.slice(head.length)), visit.at)) + tail;
  });
  return Buffer.from(written.join("\n"));
}

const clientOf = (spoken: string) => upstreams[spoken]!.client as ClientHalf<Operation>;

function heard(spoken: string, bytes: Buffer, stream: boolean): readonly ModelEvent[] {
  const of = createCallContext({ stream });
  return stream ? decode(clientOf(spoken), [bytes], of) : decodeWhole(clientOf(spoken), bytes, of);
}

describe.each(Object.keys(upstreams))("an unknown field in a response of %s", (spoken) => {
  const good = recorded(spoken).filter((one) => {
    try {
      return heard(spoken, joined(one), one.stream).length > 0;
    } catch {
      return false;
    }
  });
  const visits = fc
    .constantFrom(...good)
    .chain((one) => fc.tuple(fc.constant(one), fc.constantFrom(...one.places)));

  it("does not change the other events", () => {
    expect(good.length).toBeGreaterThan(5);
    fc.assert(
      fc.property(visits, ([one, visit]) => {
        const before = withoutUndefined(collectResponse(heard(spoken, joined(one), one.stream)));
        const after = withoutUndefined(
          collectResponse(heard(spoken, joined(one, visit), one.stream)),
        );
        expect(without(after)).toEqual(without(before));
      }),
      { numRuns: trialCount(400) },
    );
  });

  it.runIf(spoken in chats)("is forwarded with the bytes in passthrough mode", () => {
    const body = { stream_options: { include_usage: true }, input: "?" };
    const through = (one: Recorded, visit?: { line: number; at: Path }) =>
      runRelay(
        clientOf(spoken),
        [joined(one, visit)],
        createResponseContext({ stream: one.stream, body }),
      );
    let passed = 0;
    fc.assert(
      fc.property(visits, ([one, visit]) => {
        const [before, after] = [through(one), through(one, visit)];
        expect({ ...after, bytes: 0, firstContentOffset: 0, finishOffset: 0 }).toEqual({
          ...before,
          bytes: 0,
          firstContentOffset: 0,
          finishOffset: 0,
        });
        const more = String(after.bytes).includes(NAME);
        // Content after the end reaches no client, with or without an unknown member.
        if (!more) expect(String(after.bytes)).toBe(String(before.bytes));
        if (more) passed++;
      }),
      { numRuns: RUNS },
    );
    expect(passed).toBeGreaterThan(RUNS / 2);
  });
});

/** Inside opaque content (another's block, arguments, citations) the unknown member is kept. */
function without(value: unknown): unknown {
  if (typeof value === "string" && value.includes(NAME))
    return value.replace(new RegExp(`,?\\s*"${NAME}":\\s*"here"`, "g"), "");
  if (Array.isArray(value)) return value.map(without);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) => (key === NAME ? [] : [[key, without(one)]])),
  );
}
