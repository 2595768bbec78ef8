// A stream in which any one event is not UTF-8: its client gets all of it, or an error of its
// protocol, and never a false end.
import { describe, expect, it } from "vitest";
import { say, startUpstream, type ResponsePiece } from "tollgate/testing";
import { startTestServices, TIMEOUTS } from "../../kit/test-services.ts";
import { CLIENTS, TARGETS } from "../protocol-pairs.ts";

const SPOKEN = ["chat-completions", "messages", "responses"] as const;
const ENDS = /data: \[DONE\]\s*$|event: message_stop\ndata: [^\n]+\s*$/;
const FAILS = /data: \{"error":|event: error\ndata: |event: response\.failed\n/;
const roads = SPOKEN.flatMap((from) => SPOKEN.map((into) => [from, into] as const));

describe.each(roads)("a client of %s, an upstream of %s", (from, into) => {
  const manner = { stream: true, model: "m", responseNumber: 1 };
  const pieces = [say("Hello, gate.").toProtocol(into, manner).body].flat() as ResponsePiece[];
  const bytes = pieces.map((piece) =>
    Buffer.from(typeof piece === "object" && "tells" in piece ? piece.bytes : (piece as string)),
  );

  it("is reported, in whichever event it occurs", async () => {
    await using up = await startUpstream({
      "POST /*": (asked) => {
        const at = Number(/bad(\d+)/.exec(String(asked.body))![1]);
        const bad = Buffer.from(bytes[at]!.toString().replace(/":"/, '":"\0'), "latin1");
        bad[bad.indexOf(0)] = 0xff;
        return {
          headers: { "content-type": "text/event-stream" },
          body: bytes.with(at, bad),
          framing: "chunked",
        };
      },
    });
    const endpoint = { protocol: TARGETS[into]!, base: `${up.url}/v1`, auth: "none" as const };
    await using s = await startTestServices({
      frontend: CLIENTS[from]!.protocol,
      providers: { p: { endpoints: [endpoint], timeouts: TIMEOUTS } },
    });
    for (const [at, event] of bytes.entries()) {
      if (!event.includes('":"')) continue;
      const least = CLIENTS[from]!.least;
      const res = await s.ask({ ...least, model: `p/bad${at}`, stream: true });
      const text = await res.text();
      if (res.status !== 200) continue;
      const fails = FAILS.test(text);
      expect([at, fails || ENDS.test(text)], text.slice(-300)).toEqual([at, true]);
    }
  });
});
