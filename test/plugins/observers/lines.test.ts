// A line of the access log: whatever a client sends, one request is one line, and the parsed values
// equal the original ones.
import fc from "fast-check";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import type { RequestRecord } from "tollgate/plugin";
import { createRequestRecord } from "../../kit/request-record.ts";
import {
  FIELDS,
  FIELD_NAMES,
  createRejectedLineWriter,
  createLineWriter,
} from "../../../plugins/observers/access-log/fields.ts";
import { formatUsd } from "../../../plugins/observers/usd.ts";
import { trialCount } from "../../kit/law-effort.ts";

const RECORD = createRequestRecord({
  model: "fast",
  stream: true,
  bytesIn: 9,
  bytesOut: 90,
  ms: 12,
});
const call = (
  of: Partial<RequestRecord["calls"][number]> = {},
): RequestRecord["calls"][number] => ({
  n: 1,
  startMs: 0,
  spanId: "00f067aa0ba902b8",
  provider: "acme",
  model: "m",
  credential: "default",
  protocol: null,
  mode: "passthrough",
  state: "exact",
  usage: { input: 3, output: 2 },
  costNano: 1_500n,
  ms: { total: 5 },
  ...of,
});

const asJson = createLineWriter("json", FIELD_NAMES);
const asLogfmt = createLineWriter("logfmt", FIELD_NAMES);

/** Letters, and all characters that could end a line, a value, or a name, or hide text. */
const sly = fc.string({
  unit: fc.oneof(
    fc.constantFrom('"', "\\", "\n", "\r", "\u0000", "\u001b", "\u007f", "\u0085", "\u009b"),
    fc.constantFrom(
      "\u2028",
      "\u2029",
      "\u202e",
      "\ufeff",
      "\u200b",
      "\ud800",
      "\udc00",
      "\u{e0001}",
    ),
    fc.constantFrom(
      " ",
      "=",
      "{",
      "}",
      ",",
      ":",
      "ä",
      "雪",
      '\n{"forged":1}',
      "\nforged=1",
      '","forged":"',
    ),
    fc.string({ minLength: 1, maxLength: 1 }),
  ),
  maxLength: 80,
});
const whole = (text: string) => text.toWellFormed() === text;

/** A parser like an operator's tool: pairs, quoted or bare. */
function read(line: string): Map<string, string> {
  const pairs = new Map<string, string>();
  const pair = /([^\s=]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)(?: |$)/gy;
  for (let found = pair.exec(line); found; found = pair.exec(line)) {
    const [, name, value] = found as unknown as [string, string, string];
    expect(pairs.has(name), name).toBe(false);
    pairs.set(name, value.startsWith('"') ? (JSON.parse(value) as string) : value);
    if (pair.lastIndex === line.length) return pairs;
  }
  throw new Error(`This is no line of pairs: ${line}`);
}

it("the time is correct for any order of moments", () => {
  const at = fc.oneof(fc.nat(4e12), fc.integer({ min: 1_795_000_000_000, max: 1_795_000_002_000 }));
  fc.assert(
    fc.property(at, (moment) => {
      expect(FIELDS.time({ ...RECORD, at: moment })).toBe(new Date(moment).toISOString());
    }),
    { numRuns: trialCount(500) },
  );
});

describe("any names of models, labels, and IDs", () => {
  const record = fc
    .record({ model: sly, id: sly, name: sly, value: sly, alias: sly, code: sly })
    .map(({ model, id, name, value, alias, code }): RequestRecord => ({
      ...RECORD,
      model,
      clientRequestId: id,
      alias,
      labels: Object.fromEntries([[name, value]]),
      fault: { kind: "invalid", code },
    }));

  it.each([
    ["json", asJson],
    ["logfmt", asLogfmt],
  ] as const)(
    "one request is one line of %s without terminal control characters",
    (_format, write) => {
      fc.assert(
        fc.property(record, (one) => {
          const line = write(one, 1);
          expect(line.indexOf("\n")).toBe(line.length - 1);
          expect(line).not.toMatch(/[\p{Cf}\p{Zl}\p{Zp}]|(?!\n)\p{Cc}/u);
          expect(stripVTControlCharacters(line)).toBe(line);
        }),
        { numRuns: trialCount(300) },
      );
    },
  );

  it("a parsed line gives the original values, truncated to their length, and nothing else", () => {
    fc.assert(
      fc.property(record, (one) => {
        const said = JSON.parse(asJson(one, 1)) as Record<string, unknown>;
        const pairs = read(asLogfmt(one, 1).trimEnd());
        const model = one.model.slice(0, 256);
        if (model !== "") expect(said["model"]).toBe(model);
        expect(said["client_id"]).toBe(one.clientRequestId);
        expect(said["error_code"]).toBe(one.fault!.code);
        expect(said["forged"] ?? pairs.get("forged")).toBeUndefined();
        if (model !== "" && whole(model)) expect(pairs.get("model")).toBe(model);
        const [[name, value]] = Object.entries(one.labels) as [[string, string]];
        expect(said["labels"]).toEqual(
          Object.fromEntries([[name.slice(0, 64), value.slice(0, 64)]]),
        );
        const known = [...FIELD_NAMES, "label"] as readonly string[];
        for (const key of Object.keys(said)) expect(known).toContain(key);
        for (const key of pairs.keys()) expect(known).toContain(key.split(".", 1)[0]);
      }),
      { numRuns: trialCount(300) },
    );
  });

  it("two label names never collide, and none collides with a field", () => {
    const near = fc.constantFrom(
      "",
      " ",
      "_20",
      "%20",
      "=",
      "_3D",
      "%3D",
      "%",
      "%25",
      "a.b",
      "a b",
    );
    fc.assert(
      fc.property(fc.uniqueArray(near, { maxLength: 8 }), (names) => {
        const labels = Object.fromEntries(names.map((name) => [name, "1"]));
        const pairs = read(
          createLineWriter("logfmt", ["id", "labels"])({ ...RECORD, labels }, 1).trimEnd(),
        );
        expect(pairs.size).toBe(names.length + 1);
      }),
    );
  });

  it("no value exceeds its maximum length", () => {
    const long = "m".repeat(100_000);
    const one = { ...RECORD, model: long, labels: { [long]: long } };
    for (const write of [asJson, asLogfmt]) expect(write(one, 1).length).toBeLessThan(1_500);
    const said = JSON.parse(asJson(one, 1)) as { model: string; labels: Record<string, string> };
    expect(said.model).toHaveLength(256);
    expect(Object.entries(said.labels)).toEqual([["m".repeat(64), "m".repeat(64)]]);
  });
});

describe("a line", () => {
  it("sums all attempts, and reports parts without a price", () => {
    const one: RequestRecord = {
      ...RECORD,
      served: "acme/m",
      calls: [
        call({ provider: "busy", state: "void", usage: {}, costNano: 0n }),
        call({ n: 2 }),
        call({ n: 3, costNano: null, state: "unpriced" }),
      ],
    };
    expect(JSON.parse(asJson(one, 1))).toMatchObject({
      input: 6,
      output: 4,
      cost_usd: "0.0000015",
      unpriced: 1,
      attempts: 3,
      fallback: true,
      provider: "acme",
      bill_state: "unpriced",
    });
  });

  it("omits unknown and false values", () => {
    const said = JSON.parse(asJson(RECORD, 1)) as object;
    for (const name of [
      "alias",
      "served_model",
      "labels",
      "fallback",
      "cached",
      "cost_usd",
      "rate",
      "error_code",
    ])
      expect(Object.keys(said)).not.toContain(name);
  });

  it("has the configured `fields` in their order, and its sample rate", () => {
    expect(createLineWriter("json", ["status", "id"])(RECORD, 0.1)).toBe(
      '{"status":200,"id":"x1","rate":0.1}\n',
    );
    expect(createLineWriter("logfmt", ["status", "id"])(RECORD, 0.1)).toBe(
      "status=200 id=x1 rate=0.1\n",
    );
  });

  it("of a request rejected before routing has its known fields", () => {
    const refusal = {
      at: 0,
      id: "x",
      status: 404,
      code: "unknown_path",
      listener: "public",
    } as const;
    expect(JSON.parse(createRejectedLineWriter("json", FIELD_NAMES)(refusal, 1))).toEqual({
      time: "1970-01-01T00:00:00.000Z",
      id: "x",
      status: 404,
      outcome: "client_error",
      error_code: "unknown_path",
    });
    expect(createRejectedLineWriter("logfmt", ["id", "ms", "error_code"])(refusal, 1)).toBe(
      "id=x error_code=unknown_path\n",
    );
  });

  it("has amounts as exact decimals", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 18n), max: 10n ** 18n }), (nano) => {
        const said = formatUsd(nano);
        expect(said).toMatch(/^-?\d+(\.\d*[1-9])?$/);
        const [front = "", behind = ""] = said.replace("-", "").split(".");
        expect(BigInt(front) * 10n ** 9n + BigInt(behind.padEnd(9, "0"))).toBe(
          nano < 0n ? -nano : nano,
        );
      }),
    );
  });

  it("has every field once", () =>
    expect(new Set(FIELD_NAMES).size).toBe(Object.keys(FIELDS).length));
});
