// The binary event stream and the signature, tested by rules and against the vendor's code.
import { linear } from "../protocols/linear/growth.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getFault } from "tollgate/plugin";
import { claude, messages } from "tollgate/protocols/messages";
import {
  createResponseContext,
  createCallContext,
  decode,
  decodeWhole,
  comparableContent,
  runRelay,
  say,
  type ScriptedResponse,
  type ModelScript,
} from "tollgate/testing";
import { bedrockClaude } from "../../plugins/providers/aws/claude.ts";
import { converse } from "../../plugins/providers/aws/converse/index.ts";
import { createFrameReader } from "../../plugins/providers/aws/event-stream.ts";
import { signRequest } from "../../plugins/providers/aws/signer.ts";
import { KEYS, officially, REGION } from "./aws-fake.ts";
import { event, exception, frame, inConverse, inFrames, invoked } from "./aws-says.ts";
import { codePoint } from "../kit/code-points.ts";

interface Read {
  readonly frames: { readonly headers: object; readonly payload: string }[];
  readonly fault: string | undefined;
}

function read(chunks: readonly Buffer[]): Read {
  const frames: Read["frames"] = [];
  const reader = createFrameReader(({ headers, payload }) =>
    frames.push({ headers: Object.fromEntries(headers), payload: payload.toString() }),
  );
  try {
    for (const chunk of chunks) reader.push(chunk);
    reader.end();
  } catch (error) {
    return { frames, fault: getFault(error)?.code ?? String(error) };
  }
  return { frames, fault: undefined };
}

/** Truncated at these places. */
const cutAt = (bytes: Buffer, places: readonly number[]): Buffer[] => {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, i) => bytes.subarray(from, at[i] ?? bytes.length));
};

const arbitrary = fc.array(
  fc.record({
    text: fc.string({ maxLength: 40, unit: codePoint }),
    type: fc.stringMatching(/^\w{1,20}$/),
  }),
  { minLength: 1, maxLength: 6 },
);

describe("the event stream", () => {
  it("gives the same frames for any chunks", () => {
    fc.assert(
      fc.property(arbitrary, fc.array(fc.nat(), { maxLength: 30 }), (said, places) => {
        const bytes = Buffer.concat(said.map(({ type, text }) => event(type, { text })));
        const whole = read([bytes]);
        expect(whole.fault).toBeUndefined();
        expect(whole.frames.map(({ payload }) => JSON.parse(payload).text)).toEqual(
          said.map(({ text }) => text),
        );
        expect(read(cutAt(bytes, places))).toEqual(whole);
        expect(read([...bytes].map((byte) => Buffer.of(byte)))).toEqual(whole);
      }),
    );
  });

  it("is never complete if it is truncated", () => {
    const bytes = Buffer.concat([event("a", { x: 1 }), exception("b", "no")]);
    const edge = event("a", { x: 1 }).length;
    for (let length = 1; length < bytes.length; length++)
      if (length !== edge) expect(read([bytes.subarray(0, length)]).fault).toBe("truncated");
  });

  it("is rejected if any bit is flipped", () => {
    const bytes = event("chunk", { bytes: "aGVsbG8=" });
    for (let at = 0; at < bytes.length * 8; at++) {
      const bent = Buffer.from(bytes);
      bent[at >> 3]! ^= 1 << (at & 7);
      const { frames, fault } = read([bent]);
      expect(frames, `bit ${at}`).toEqual([]);
      expect(["bad_stream", "truncated"]).toContain(fault);
    }
  });

  it("rejects a frame above the size limit", () => {
    const head = Buffer.from(frame({}, {})).subarray(0, 12);
    for (const length of [17 * 1024 * 1024, 0xffff_ffff, 3]) {
      const bent = Buffer.from(head);
      bent.writeUInt32BE(length, 0);
      // With a valid checksum: only the length is wrong.
      bent.writeUInt32BE(crc(bent.subarray(0, 8)), 8);
      expect(read([bent]).fault).toBe("bad_stream");
    }
  });

  it("is parsed in linear time, also one byte at a time", () => {
    linear((bytes) => {
      const one = frame({ ":message-type": "event" }, { text: "x".repeat(bytes) });
      const chunks = Array.from({ length: one.length }, (_, i) => one.subarray(i, i + 1));
      return () => expect(read(chunks).frames).toHaveLength(1);
    }, 200_000);
  });
});

const crc = (bytes: Buffer): number => {
  let c = 0xffff_ffff;
  for (const byte of bytes) {
    c ^= byte;
    for (let k = 0; k < 8; k++) c = c & 1 ? (c >>> 1) ^ 0xedb8_8320 : c >>> 1;
  }
  return (c ^ 0xffff_ffff) >>> 0;
};

describe("the content of responses", () => {
  const bytesOf = (answer: ScriptedResponse): Buffer =>
    Buffer.concat(
      [answer.body ?? []]
        .flat()
        .map((piece) =>
          Buffer.from(
            (typeof piece === "object" && "tells" in piece ? piece.bytes : piece) as Buffer,
          ),
        ),
    );
  const speech = fc
    .array(
      fc.oneof(
        fc.record({ text: fc.string({ minLength: 1, unit: "grapheme" }) }),
        fc.record({ thought: fc.string({ minLength: 1 }), proof: fc.stringMatching(/^\w{1,9}$/) }),
        fc.record({ args: fc.dictionary(fc.stringMatching(/^\w{1,5}$/), fc.integer()) }),
      ),
      { minLength: 1, maxLength: 5 },
    )
    .map((all) =>
      all.reduce<ModelScript>(
        (said, one, i) =>
          "text" in one
            ? said.say(one.text)
            : "args" in one
              ? said.call("go", one.args, `tooluse_${i}`)
              : said.think(one.thought, one.proof),
        say("So: "),
      ),
    );
  const usage = fc.record({ input: fc.nat(1e6), cache_read: fc.nat(1e6), output: fc.nat(1e6) });
  const headers = { "content-type": "application/vnd.amazon.eventstream" };

  it("from Converse is the same non-streaming, streaming, and in any chunks", () => {
    const client = converse().client!;
    fc.assert(
      fc.property(speech, usage, fc.array(fc.nat(), { maxLength: 20 }), (words, used, places) => {
        const said = words.usage(used);
        const bytes = bytesOf(inFrames(said));
        const once = decode(client, [bytes], createCallContext({ stream: true }), headers);
        expect(
          decode(client, cutAt(bytes, places), createCallContext({ stream: true }), headers),
        ).toEqual(once);
        const whole = decodeWhole(client, bytesOf(inConverse(said)), createCallContext());
        expect(comparableContent(once)).toEqual(comparableContent(whole));
      }),
    );
  });

  it("from Claude matches its own protocol, in both modes and in any chunks", () => {
    const client = bedrockClaude([]).client!;
    const plain = messages(claude).client!;
    fc.assert(
      fc.property(speech, usage, fc.array(fc.nat(), { maxLength: 20 }), (words, used, places) => {
        const said = words.usage(used);
        const frames = cutAt(bytesOf(invoked(said, "model", true)), places);
        const text = bytesOf(said.toProtocol("messages", { stream: true, model: "model" }));
        expect(decode(client, frames, createCallContext({ stream: true }), headers)).toEqual(
          decode(plain, [text], createCallContext({ stream: true })),
        );
        const to = createResponseContext({ stream: true });
        const relayed = runRelay(client, frames, to, used, headers);
        const due = runRelay(plain, [text], to, used);
        expect(relayed.bytes.toString()).toBe(due.bytes.toString());
        expect([relayed.usage, relayed.finish]).toEqual([due.usage, due.finish]);
      }),
    );
  });
});

describe("a signature equals the vendor's, byte for byte", () => {
  const now = new Date("2026-11-23T10:11:12.000Z");
  const both = async (path: string, body: string, token?: string, type = "application/json") => {
    const url = new URL(`https://bedrock-runtime.${REGION}.amazonaws.com${path}`);
    const keys = { ...KEYS, ...(token !== undefined && { token }) };
    const request = { method: "POST", url, body: Buffer.from(body) };
    const scope = { region: REGION, service: "bedrock" };
    const ours = signRequest(
      keys,
      { ...request, headers: { "content-type": type } },
      { ...scope, now: now.getTime() },
    );
    const theirs = await officially(keys, {
      ...request,
      ...scope,
      headers: {
        host: url.host,
        "content-type": type,
        "x-amz-content-sha256": ours["x-amz-content-sha256"]!,
      },
      now,
    });
    expect(ours["authorization"]).toBe(theirs["authorization"]);
    expect(ours["x-amz-date"]).toBe(theirs["x-amz-date"]);
    expect(ours["x-amz-security-token"]).toBe(theirs["x-amz-security-token"]);
  };

  it.each([
    ["a colon", "/model/us.amazon.nova-2-lite-v1%3A0/converse"],
    [
      "an ARN",
      "/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Aapplication-inference-profile%2Fabc123/invoke",
    ],
    ["plain", "/openai/v1/chat/completions"],
    ["a query", "/inference-profiles?maxResults=1000&nextToken=a%2Fb%3D%3D"],
  ])("%s", (_name, path) => both(path, '{"hello":"world"}'));

  it("with temporary keys", () => both("/rerank", "{}", "a-token-that-ends/+=="));

  it("for any path, query, and body", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 4 }),
        fc.dictionary(fc.stringMatching(/^[a-zA-Z0-9-]{1,8}$/), fc.string({ maxLength: 12 })),
        fc.string(),
        async (steps, query, body) => {
          fc.pre(steps.every((step) => step !== "." && step !== ".."));
          const path = `/${steps.map((step) => encodeURIComponent(step)).join("/")}`;
          const asked = new URLSearchParams(query).toString();
          await both(asked === "" ? path : `${path}?${asked}`, body);
        },
      ),
    ));
});
