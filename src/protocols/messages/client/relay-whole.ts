// The verbatim lane of an answer that is one JSON text: it comes in one piece.
import type { Fault } from "../../../model/error.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { gather, needle, valueAt } from "../../sse/index.ts";
import { fault as refusal } from "../server/fault.ts";
import { usageTo } from "../usage.ts";
import { wordsOf } from "./amount.ts";
import { Tap } from "./tap.ts";
import { answerOf } from "./whole.ts";

const MODEL = needle("model");

export function relayWhole(sink: RelaySink, to: AnswerContext): Relay {
  const tap = new Tap(sink);
  return {
    between: true,
    push(body) {
      const answer = answerOf(body);
      tap.whole(answer);
      tap.content(wordsOf(answer["content"]));
      const settled = tap.finish();
      if (settled)
        return sink.bytes(
          Buffer.from(JSON.stringify({ ...answer, model: to.model, usage: usageTo(settled) })),
        );
      const at = valueAt(body, [MODEL], body.indexOf(123));
      const name = at && body.toString("utf8", at.from, at.to);
      // Written twice, and differently, it means the last to us and perhaps the first to others.
      if (!at || name !== JSON.stringify(answer["model"]))
        return sink.bytes(Buffer.from(JSON.stringify({ ...answer, model: to.model })));
      const out = gather((b) => sink.bytes(b));
      out.add(body.subarray(0, at.from));
      out.add(Buffer.from(JSON.stringify(to.model)));
      out.add(body.subarray(at.to));
      out.flush();
    },
    end() {},
    fail(f: Fault) {
      sink.bytes(Buffer.from(JSON.stringify(refusal(f, to).body)));
    },
  };
}
