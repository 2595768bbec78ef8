// Passthrough mode of a non-streaming response, which arrives in one piece.
import type { Fault } from "../../../model/error.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { createWriteBatch, encodeKey, findValue } from "../../sse/index.ts";
import { encodeFault as refusal } from "../server/fault.ts";
import { usageTo } from "../usage.ts";
import { textBytesOf } from "./text-size.ts";
import { UsageTap } from "./usage-tap.ts";
import { parseMessage } from "./response.ts";

const MODEL = encodeKey("model");

export function createResponsePassthrough(
  sink: PassthroughSink,
  to: ResponseContext,
): PassthroughStream {
  const tap = new UsageTap(sink);
  return {
    isBetweenEvents: true,
    push(body) {
      const answer = parseMessage(body);
      tap.response(answer);
      tap.content(textBytesOf(answer["content"]));
      const settled = tap.finish();
      if (settled)
        return sink.write(
          Buffer.from(JSON.stringify({ ...answer, model: to.model, usage: usageTo(settled) })),
        );
      const at = findValue(body, [MODEL], body.indexOf(123));
      const name = at && body.toString("utf8", at.from, at.to);
      // If the model name occurs twice with different values, the gateway reads the last one, but
      // other readers may use the first.
      if (!at || name !== JSON.stringify(answer["model"]))
        return sink.write(Buffer.from(JSON.stringify({ ...answer, model: to.model })));
      const out = createWriteBatch((b) => sink.write(b));
      out.add(body.subarray(0, at.from));
      out.add(Buffer.from(JSON.stringify(to.model)));
      out.add(body.subarray(at.to));
      out.flush();
    },
    end() {},
    writeFault(f: Fault) {
      sink.write(Buffer.from(JSON.stringify(refusal(f, to).body)));
    },
  };
}
