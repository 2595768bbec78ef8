// The verbatim lane of an answer that is one JSON text.
import { fail, type Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { throwFailure } from "../../failure/failure.ts";
import { list, object, parsed, text } from "../../json.ts";
import { sniff, type ImageHead } from "../../sniff.ts";
import { endOfValue, gather, needle, valueAt } from "../../sse/index.ts";
import { fault } from "../server/fault.ts";
import { tokensOf, usageSeen } from "../usage.ts";

const MODEL = needle("model");
const USAGE = needle("usage");
const DATA = needle("data");

export function relayWhole(sink: RelaySink, to: AnswerContext): Relay {
  return {
    between: true,
    push(body) {
      const from = body.indexOf(123);
      if (!isOneValue(body, from)) notJson();
      const counts = from < 0 ? undefined : valueAt(body, [USAGE], from);
      const said = counts && parsed(body.toString("utf8", counts.from, counts.to));
      const data = from < 0 ? undefined : valueAt(body, [DATA], from);
      // Pictures are megabytes: they are parsed only where nothing else says how many they are.
      if (tokensOf(said) && data && body[data.from] === 91) sink.usage(usageSeen(said, []));
      else sink.usage(counted(body, said));
      sink.content();
      sink.finish("stop");
      const out = gather((b) => sink.bytes(b));
      const name = valueAt(body, [MODEL], from);
      if (name && body[name.from] === 34) {
        out.add(body.subarray(0, name.from));
        out.add(Buffer.from(JSON.stringify(to.model)));
        out.add(body.subarray(name.to));
      } else out.add(body);
      out.flush();
    },
    end() {},
    fail(f: Fault) {
      sink.bytes(Buffer.from(JSON.stringify(fault(f, to).body)));
    },
  };
}

/** It begins, ends, and nothing follows. */
function isOneValue(body: Buffer, from: number): boolean {
  if (from < 0) return false;
  const end = endOfValue(body, from);
  return end >= 0 && body.toString("latin1", end).trim() === "";
}

const notJson = (): never =>
  fail("upstream", "The provider's answer is not a JSON object.", { code: "bad_answer" });

function counted(body: Buffer, said: JsonObject | undefined): ReturnType<typeof usageSeen> {
  const answer = parsed(body.toString("utf8"));
  if (!answer) return notJson();
  if (object(answer["error"]) && !answer["data"]) throwFailure(answer);
  const pictures = list(answer["data"]).flatMap((item) => pictureIn(object(item)) ?? []);
  if (pictures.length === 0)
    fail("upstream", "The provider answered without an image.", { code: "no_image" });
  return usageSeen(said, pictures);
}

/** As the other lane takes it: bytes, or an address of which nothing is known. */
export function pictureIn(item: JsonObject | undefined): [ImageHead | undefined] | undefined {
  const base64 = text(item?.["b64_json"]);
  if (base64) return [sniff({ base64 })];
  return text(item?.["url"]) ? [undefined] : undefined;
}
