// Output of an isolated plugin is not trusted: whatever it sends, others continue, and its own
// calls fail.
import { duplexPair } from "node:stream";
import { describe, expect, it } from "vitest";
import { getFault } from "../../../src/model/error.ts";
import { parseFrame, LineReader } from "../../../src/isolation/frames.ts";
import { PluginConnection, PluginFailure } from "../../../src/isolation/plugin-connection.ts";
import { installTestClock } from "../../kit/clock.ts";
import { turnEventLoop, until } from "../../kit/wait.ts";

function linked(answers = {}) {
  const [here, there] = duplexPair();
  const ended: string[] = [];
  const told: string[] = [];
  const link = new PluginConnection({
    stream: here,
    handlers: answers,
    onNotify: (name) => void told.push(name),
    onClose: (why) => ended.push(why),
  });
  const asked: any[] = [];
  const reader = new LineReader();
  there.on("error", () => {});
  there.on("data", (chunk: Buffer) =>
    reader.push(
      chunk,
      () => Infinity,
      (line) => {
        asked.push(JSON.parse(line));
        return true;
      },
    ),
  );
  const say = (frame: unknown) =>
    void there.write(`${typeof frame === "string" ? frame : JSON.stringify(frame)}\n`);
  return { link, say, there, asked, ended, told };
}
const turn = () => turnEventLoop(20);

describe("a connection", () => {
  it("returns results in any order, by their number", async () => {
    const { link, say } = linked();
    const both = Promise.all([link.call("a", 1), link.call("b", 2)]);
    say({ reply: 2, value: "two" });
    say({ reply: 1, value: "one" });
    expect(await both).toEqual(["one", "two"]);
    link.close("done");
  });

  it("sends the messages of one turn in one write, with pending notifications", async () => {
    const { link, say, there, asked } = linked();
    let writes = 0;
    there.on("data", () => writes++);
    link.notifyLazily("request_end", { exchange: "0" });
    const both = Promise.all([link.call("a", 1), link.call("b", 2)]);
    link.notifyLazily("request_end", { exchange: "1" });
    await until(() => asked.length === 4);
    expect(writes).toBe(1);
    expect(asked.map(({ call, notify }) => call ?? notify)).toEqual([
      "request_end",
      1,
      2,
      "request_end",
    ]);
    say({ reply: 1 });
    say({ reply: 2 });
    await both;
    // Alone it is sent slightly later.
    link.notifyLazily("request_end", { exchange: "2" });
    await until(() => asked.length === 5);
    link.close("done");
  });

  it("reports a slow call once, and never a fast one", async () => {
    const time = installTestClock();
    const { link, say } = linked();
    const slow: string[] = [];
    const short = link.call("a", 1, { onSlow: () => slow.push("short") });
    say({ reply: 1 });
    await short;
    const long = link.call("b", 2, { onSlow: () => slow.push("long") });
    time.skip(800);
    expect(slow).toEqual(["long"]);
    time.skip(800);
    say({ reply: 2 });
    await long;
    expect(slow).toEqual(["long"]);
    link.close("done");
  });

  it("resolves to the decoded result, and rejects if decoding throws", async () => {
    const { link, say } = linked();
    const read = (value: unknown) => {
      if (value !== 1) throw new TypeError("It is not one.");
      return "one";
    };
    const one = link.call("a", {}, { parseReply: read });
    const two = link.call("a", {}, { parseReply: read }).catch((problem: unknown) => problem);
    say({ reply: 1, value: 1 });
    say({ reply: 2, value: 2 });
    expect(await one).toBe("one");
    expect(await two).toBeInstanceOf(TypeError);
    expect(link.isClosed).toBe(false);
    link.close("done");
  });

  it("distinguishes a rejection from a failure", async () => {
    const { link, say } = linked();
    const word = link.call("a", {}).catch((problem: unknown) => problem);
    say({ reply: 1, fault: { kind: "forbidden", message: "No.", code: "words", other: 1 } });
    expect(getFault(await word)).toEqual({ kind: "forbidden", message: "No.", code: "words" });
    const failure = link.call("a", {}).catch((problem: unknown) => problem);
    say({ reply: 2, error: "broke" });
    expect(await failure).toBeInstanceOf(PluginFailure);
    const nonsense = link.call("a", {}).catch((problem: unknown) => problem);
    say({ reply: 3, fault: { kind: "constructor", message: "x" } });
    expect(getFault(await nonsense)).toBeUndefined();
    link.close("done");
  });

  it.each([
    ["no JSON", "{"],
    ["no object", "7"],
    ["a frame of two sorts", { call: 1, notify: "x" }],
    ["a frame of none", { hello: 1 }],
    ["an answer without a question", { reply: 99, value: 1 }],
    ["a number that is none", { reply: "1" }],
    ["deep nesting", "[".repeat(100_000)],
    ["nothing", ""],
  ])("ends at %s, and open calls fail", async (_name, frame) => {
    const { link, say, ended } = linked();
    const asked = link.call("a", {}).catch((problem: unknown) => problem);
    say(frame);
    expect(await asked).toBeInstanceOf(PluginFailure);
    expect(ended).toHaveLength(1);
    await expect(link.call("b", {})).rejects.toBeInstanceOf(PluginFailure);
  });

  it("ends at a second reply", async () => {
    const { link, say, ended } = linked();
    const asked = link.call("a", {});
    say({ reply: 1, value: 1 });
    expect(await asked).toBe(1);
    say({ reply: 1, value: 2 });
    await turn();
    expect(ended).toEqual([expect.stringContaining("unexpected or repeated response")]);
  });

  it("ends at an overlong line, before it is buffered", async () => {
    const { link, there, ended } = linked();
    const asked = link.call("a", {}).catch((problem: unknown) => problem);
    const piece = Buffer.alloc(1024 * 1024, 32);
    for (let i = 0; i < 12 && ended.length === 0; i++) {
      there.write(piece);
      await turn();
    }
    expect(ended).toEqual([expect.stringContaining("a message that is too large")]);
    expect(await asked).toBeInstanceOf(PluginFailure);
  });

  it("ends if it receives too much", async () => {
    const { say, ended } = linked();
    say('{"notify":"log"}\n'.repeat(100_000) + '{"notify":"log"}');
    await until(() => ended.length > 0);
    expect(ended).toEqual([expect.stringContaining("too many messages")]);
  });

  it("probes a silent peer, and ends without a reply", async () => {
    const time = installTestClock();
    const { link, say, asked, ended } = linked();
    const first = link.call("a", {});
    say({ reply: 1, value: 0 });
    await first;
    const hung = link.call("b", {}).catch((problem: unknown) => problem);
    time.skip(1_000);
    await turn();
    time.skip(3_000);
    expect(await hung).toBeInstanceOf(PluginFailure);
    expect(asked.at(-1)).toEqual({ notify: "ping" });
    expect(ended).toEqual(["it does not respond"]);
  });

  it("waits for a peer that replies to the probe", async () => {
    const time = installTestClock();
    const { link, say, asked, ended } = linked();
    const first = link.call("a", {});
    say({ reply: 1, value: 0 });
    await first;
    const slow = link.call("b", {});
    for (let i = 0; i < 40; i++) {
      time.skip(250);
      await turn();
      if (asked.at(-1)?.notify === "ping") say({ notify: "pong" });
    }
    say({ reply: 2, value: "late" });
    expect([await slow, ended]).toEqual(["late", []]);
    link.close("done");
  });

  it("accepts messages about a call while it is open, and no others", async () => {
    const { link, say, asked } = linked({ known: () => "there" });
    const open = link.call("attempt", {}, { handlers: { next: () => "head" } });
    say({ call: 1, method: "next", parent: 1 });
    say({ call: 2, method: "known" });
    say({ call: 3, method: "next" });
    say({ call: 4, method: "constructor", parent: 1 });
    await turn();
    say({ reply: 1, value: "over" });
    await open;
    say({ call: 5, method: "next", parent: 1 });
    await turn();
    const answers = Object.fromEntries(
      asked.filter((one) => one.reply).map((one) => [one.reply, one.value ?? one.error]),
    );
    expect(answers).toEqual({
      1: "head",
      2: "there",
      3: expect.stringContaining("is not available"),
      4: expect.stringContaining("is not available"),
      5: expect.stringContaining("is not available"),
    });
    link.close("done");
  });
});

describe("lines", () => {
  it("are the same for any chunks", () => {
    const bytes = Buffer.from('{"notify":"é"}\n{"notify":"b"}\n\n{"notify":"c"}');
    for (let size = 1; size <= bytes.length; size++) {
      const heard: string[] = [];
      const reader = new LineReader();
      for (let at = 0; at < bytes.length; at += size)
        reader.push(
          bytes.subarray(at, at + size),
          () => 1_000,
          (line) => heard.push(line) > 0,
        );
      expect(heard).toEqual(['{"notify":"é"}', '{"notify":"b"}', ""]);
    }
  });

  it("are frames of one type, or invalid", () => {
    expect(parseFrame('{"call":1,"method":"x"}')).toEqual({ call: 1, method: "x" });
    for (const text of [
      '{"call":0,"method":"x"}',
      '{"call":1}',
      '{"call":1.5,"method":"x"}',
      "[]",
      "null",
      '{"notify":1}',
    ])
      expect(parseFrame(text), text).toBeUndefined();
  });
});
