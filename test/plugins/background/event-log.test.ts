// The log of a background response: a reader gets exactly the events that were written, in whatever
// frames they are, from any event on, also while the log is written.
import { randomBytes } from "node:crypto";
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { EventLogReader, EventLogWriter } from "../../../plugins/frontends/jobs/event-log.ts";
import {
  encodeLineForClient,
  numberEvent,
  responseOf,
} from "../../../plugins/frontends/background/response-events.ts";
import { trialCount } from "../../kit/law-effort.ts";

const dir = mkdtempSync(join(tmpdir(), "tollgate-log-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
let logs = 0;
const newPath = () => join(dir, `log${++logs}`);

async function readAll(path: string, key: Uint8Array): Promise<string[]> {
  const reader = await EventLogReader.open(path, key);
  const all: string[] = [];
  try {
    for (let lines = await reader.next(); lines; lines = await reader.next()) all.push(...lines);
  } finally {
    await reader.close();
  }
  return all;
}

/** Events of any text and size. A flush or a frame of its own can follow each. */
const steps = fc.array(
  fc.record({
    data: fc.oneof(
      fc.string({ unit: "grapheme" }),
      fc.nat(40_000).map((n) => "x".repeat(n)),
    ),
    then: fc.constantFrom("more", "more", "more", "flush", "alone"),
  }),
  { minLength: 1, maxLength: 40 },
);
type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;

const linesOf = (all: Steps): string[] =>
  all.map(({ data }, n) => numberEvent(JSON.stringify({ type: "t", data }), "resp_1", n).line);

async function write(log: EventLogWriter, all: Steps): Promise<void> {
  const lines = linesOf(all);
  for (const [n, { then }] of all.entries()) {
    if (then === "alone") await log.appendAlone(lines[n]!);
    else await log.append(lines[n]!);
    if (then === "flush") await log.flush();
  }
}

it("a log returns its events in order, and nothing of them is readable on disk", () =>
  fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const [path, key] = [newPath(), randomBytes(32)];
      const log = await EventLogWriter.create(path, key);
      await write(log, all);
      await log.close();
      expect(await readAll(path, key)).toEqual(linesOf(all));
      expect(readFileSync(path).length).toBe(log.bytes);
      expect(readFileSync(path).includes('"sequence_number"')).toBe(false);
      await expect(readAll(path, randomBytes(32))).rejects.toThrow();
    }),
    { numRuns: trialCount(200) },
  ));

it("after any number, a stream continues with exactly the following events", () =>
  fc.assert(
    fc.asyncProperty(steps, fc.nat(45), async (all, after) => {
      const [path, key] = [newPath(), randomBytes(32)];
      const log = await EventLogWriter.create(path, key);
      await write(log, all);
      await log.close();
      const numbers = (await readAll(path, key))
        .slice(after + 1)
        .map((line) => /^data: (.*)$/m.exec(encodeLineForClient(line))![1]!)
        .map((text) => (JSON.parse(text) as { sequence_number: number }).sequence_number);
      expect(numbers).toEqual(
        Array.from({ length: Math.max(0, all.length - after - 1) }, (_, n) => after + 1 + n),
      );
    }),
    { numRuns: trialCount(100) },
  ));

it("a reader that follows a log gets each event once, and never a part of a frame", () =>
  fc.assert(
    fc.asyncProperty(steps, fc.array(fc.nat(70_000)), async (all, cuts) => {
      const [path, key] = [newPath(), randomBytes(32)];
      const log = await EventLogWriter.create(path, key);
      await write(log, all);
      await log.close();
      const bytes = readFileSync(path);
      const growing = newPath();
      writeFileSync(growing, "");
      const reader = await EventLogReader.open(growing, key);
      const read: string[] = [];
      let at = 0;
      for (const cut of [...cuts, bytes.length]) {
        const to = Math.min(bytes.length, at + cut);
        appendFileSync(growing, bytes.subarray(at, to));
        at = to;
        for (let lines = await reader.next(); lines; lines = await reader.next())
          read.push(...lines);
      }
      await reader.close();
      expect(read).toEqual(linesOf(all));
    }),
    { numRuns: trialCount(100) },
  ));

it("a changed or moved frame is rejected, and a log ends where its record says", async () => {
  const [path, key] = [newPath(), randomBytes(32)];
  const log = await EventLogWriter.create(path, key);
  await log.appendAlone("a");
  const second = await log.appendAlone("b");
  await log.close();
  const bytes = readFileSync(path);
  expect(await readAll(path, key)).toEqual(["a", "b"]);
  const at = await EventLogReader.open(path, key, second);
  expect(await at.next()).toEqual(["b"]);
  expect(await at.next()).toBe(undefined);
  await at.close();
  const short = await EventLogReader.open(path, key);
  expect(await short.next(second.offset)).toEqual(["a"]);
  expect(await short.next(second.offset)).toBe(undefined);
  await short.close();
  const swapped = [bytes.subarray(second.offset), bytes.subarray(0, second.offset)];
  writeFileSync(path, Buffer.concat(swapped));
  await expect(readAll(path, key)).rejects.toThrow();
  bytes[10]! ^= 1;
  writeFileSync(path, bytes);
  await expect(readAll(path, key)).rejects.toThrow();
  truncateSync(path, 3);
  expect(await readAll(path, key)).toEqual([]);
});

it("an event has the gateway's ID and number, whatever it had before", () => {
  const text = JSON.stringify({
    type: "response.completed",
    sequence_number: 99,
    response: { id: "resp_theirs", status: "completed", background: false },
  });
  const { line, endsAs, upstreamId } = numberEvent(text, "resp_ours", 3);
  expect([endsAs, upstreamId]).toEqual(["completed", "resp_theirs"]);
  expect(encodeLineForClient(line)).toBe(
    'event: response.completed\ndata: {"type":"response.completed","sequence_number":3,' +
      '"response":{"id":"resp_ours","status":"completed","background":true}}\n\n',
  );
  expect(responseOf(line, {})).toMatchObject({ id: "resp_ours", status: "completed" });
  const odd = numberEvent(JSON.stringify({ type: "a\nb\tc" }), "resp_ours", 0).line;
  expect(encodeLineForClient(odd)).toBe(
    'event: a b c\ndata: {"type":"a\\nb\\tc","sequence_number":0}\n\n',
  );
});
