import { execFile } from "node:child_process";
import { promisify, stripVTControlCharacters } from "node:util";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createLog } from "../../../src/lib/log/log.ts";
import { SecretMask } from "../../../src/lib/log/secret-mask.ts";
import { trialCount } from "../../kit/law-effort.ts";
import { codePoint } from "../../kit/code-points.ts";

function logged(
  write: (log: ReturnType<typeof createLog>) => void,
  mask = new SecretMask(),
): string[] {
  const lines: string[] = [];
  write(createLog({ level: "debug", pretty: false, mask, write: (line) => lines.push(line) }));
  return lines;
}

/** Every string in a value, including keys. */
function* strings(value: unknown): Generator<string> {
  if (typeof value === "string") yield value;
  else if (Array.isArray(value)) for (const each of value) yield* strings(each);
  else if (typeof value === "object" && value !== null)
    for (const [key, each] of Object.entries(value)) {
      yield key;
      yield* strings(each);
    }
}

const awkward = fc.constantFrom(...'aB1 "\\\n\t/+%=&?é😀');
const secret = fc
  .string({
    unit: fc.oneof(awkward, fc.string({ unit: codePoint, minLength: 1, maxLength: 1 })),
    minLength: 6,
    maxLength: 60,
  })
  .filter(
    (value) => value.isWellFormed() && value.trim().length >= 6 && !"[secret]".includes(value),
  );
const around = fc.string({ maxLength: 12 });

const ways: Record<string, (secret: string, before: string, after: string) => string> = {
  raw: (s, a, b) => a + s + b,
  "in JSON": (s, a, b) => JSON.stringify({ [a]: a + s + b }),
  "in JSON in JSON": (s, a, b) => JSON.stringify({ body: JSON.stringify({ key: a + s + b }) }),
  base64: (s, a, b) => Buffer.from(a + s + b).toString("base64"),
  base64url: (s, a, b) => Buffer.from(a + s + b).toString("base64url"),
  "URL-encoded": (s, a, b) => a + encodeURIComponent(s) + b,
  "in a query": (s, a, b) => `${new URL(`http://x/?k=${encodeURIComponent(a + s + b)}`)}`,
};

/** Ways to recover the secret from a text. */
function readable(text: string, value: string): boolean {
  const json = (text: string) => JSON.stringify(text).slice(1, -1);
  const uri = encodeURIComponent(value);
  if ([value, json(value), json(json(value)), uri].some((form) => text.includes(form))) return true;
  for (const encoding of ["base64", "base64url"] as const)
    for (let i = 0; i < 4; i++)
      if (Buffer.from(text.slice(i), encoding).includes(value)) return true;
  return false;
}

describe("masking of secrets", () => {
  for (const [name, spell] of Object.entries(ways))
    test(`hides a registered secret in every line: ${name}`, () => {
      fc.assert(
        fc.property(secret, around, around, fc.jsonValue(), (value, before, after, more) => {
          const mask = new SecretMask();
          mask.add([value]);
          const text = spell(value, before, after);
          fc.pre(![...strings(more)].some((each) => readable(each, value)));
          const [line] = logged((log) => {
            log.child({ child: text }).info({ text, [text]: 1, deep: [{ text }], more }, text);
          }, mask);
          const entry: unknown = JSON.parse(line!);
          for (const each of strings(entry)) expect(readable(each, value)).toBe(false);
          expect(line).not.toContain(JSON.stringify(value).slice(1, -1));
        }),
        { numRuns: trialCount(300) },
      );
    });

  test("does not change other text", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), secret, (value, message, unused) => {
        fc.pre(!JSON.stringify([value, message]).includes(unused.slice(0, 3)));
        const mask = new SecretMask();
        mask.add([unused]);
        const [line] = logged((log) => log.warn({ value }, message), mask);
        expect(JSON.parse(line!)).toMatchObject({
          level: "warn",
          msg: message,
          value: JSON.parse(JSON.stringify(value)) as unknown,
        });
      }),
    );
  });

  test.each([
    "tg_0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ012345",
    "ek_0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ012345",
    "Bearer abc123def456",
    "authorization: bearer AAAAAAAAAAAAAAAAAAAAAAAA",
    "Basic dXNlcjpwYXNzd29yZDE=",
    "sk-proj-abcdefghijklmnop",
    "sk-ant-api03-xyz",
  ])("masks a key by its format: %s", (text) => {
    const [line] = logged((log) => log.info({ text }, `it was ${text}.`));
    expect(line).toContain("[secret]");
    expect(line).not.toContain(text.split(" ").at(-1)!.slice(-8));
  });

  test.each([
    "bearer authentication failed",
    "task-management",
    "tg_0123456789",
    "risk-skipped-long",
  ])("keeps ordinary words: %s", (text) => {
    expect(logged((log) => log.info({}, text))[0]).toContain(text);
  });

  test("masks a private key line by line", () => {
    const mask = new SecretMask();
    mask.add([
      "-----BEGIN KEY-----\nMIIEvgIBADANBgkqhkiG9w0\nBAQEFAASCBKgwggSkAgEAAo\n-----END KEY-----",
    ]);
    expect(mask.maskText("near MIIEvgIBADANBgkqhkiG9w0 it broke")).toBe("near [secret] it broke");
  });

  test("masks a secret that is a number", () => {
    const mask = new SecretMask();
    mask.add(["123456789"]);
    expect(
      JSON.parse(logged((log) => log.info({ pin: 123456789, port: 8787 }, "x"), mask)[0]!),
    ).toMatchObject({ pin: "[secret]", port: 8787 });
  });
});

describe("the log", () => {
  test("consists of JSON lines with a level name, an ISO time, and a message", () => {
    const [line] = logged((log) => log.info({ port: 8787 }, "listening"));
    expect(line!.endsWith("\n")).toBe(true);
    const entry = JSON.parse(line!) as Record<string, unknown>;
    expect(Object.keys(entry)).toEqual(["level", "time", "port", "msg"]);
    expect(entry["time"]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  test("contains the readable part of an error: no request, no headers", () => {
    const error = Object.assign(new Error("refused", { cause: new TypeError("deep") }), {
      code: "ECONNREFUSED",
      headers: { authorization: "hidden" },
      request: { body: "hidden" },
    });
    const [line] = logged((log) => log.error({ error }, "failed"));
    expect(line).not.toContain("hidden");
    expect(JSON.parse(line!)).toMatchObject({
      error: {
        name: "Error",
        message: "refused",
        code: "ECONNREFUSED",
        cause: { message: "deep" },
      },
    });
  });

  test("is silent below its level, and a changed level applies to children too", () => {
    const lines: string[] = [];
    const log = createLog({ level: "warn", pretty: false, write: (line) => lines.push(line) });
    const child = log.child({ plugin: "x" });
    log.info({}, "no");
    log.warn({}, "one");
    log.setLevel("debug");
    child.debug({}, "two");
    child.setLevel("error");
    log.warn({}, "no");
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(["one", "two"]);
  });

  test("is text on a terminal, without control characters from outside", () => {
    const lines: string[] = [];
    const log = createLog({ level: "info", pretty: true, write: (line) => lines.push(line) });
    log.warn({ id: "providers.a", text: "two words", bad: "\u001b[2J" }, "slow\u001b[31m");
    const text = stripVTControlCharacters(lines[0]!);
    expect(text).toMatch(
      /^\d\d:\d\d:\d\d warn  slow\\u001b\[31m id=providers\.a text="two words" /,
    );
    expect(lines[0]).not.toContain("\u001b[2J");
    log.error(
      { why: "file", problems: ["a.yaml:1:2  no\u001b[2J", "a.yaml:3:4  such"] },
      "refused",
    );
    expect(stripVTControlCharacters(lines[1]!).slice(9)).toBe(
      "error refused why=file\n  a.yaml:1:2  no\\u001b[2J\n  a.yaml:3:4  such\n",
    );
  });

  test("is written completely before the process ends", async () => {
    const script = `
      import { createLog } from "./src/lib/log/log.ts";
      const log = createLog({ level: "info", pretty: false });
      for (let i = 0; i < 2000; i++) log.info({ i }, "line");
      process.exit(3);`;
    const ran = promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
      cwd: new URL("../../..", import.meta.url).pathname,
      maxBuffer: 1 << 24,
    });
    const { stdout, code } = (await ran.catch((error: unknown) => error)) as {
      stdout: string;
      code: number;
    };
    expect(code).toBe(3);
    expect(stdout.trim().split("\n")).toHaveLength(2000);
  });
});
