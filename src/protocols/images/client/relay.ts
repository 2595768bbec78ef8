// The verbatim lane: bytes pass as they came, pictures are not even decoded. The tap looks for the counts.
import { fail, type Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import type { Usage } from "../../../model/usage.ts";
import { throwFailure } from "../../failure/failure.ts";
import { list, number, object, parsed, text } from "../../json.ts";
import { eventOf, frames, gather, needle, valueAt } from "../../sse/index.ts";
import { CAP, sum } from "./stream.ts";
import { failure, fault } from "../server/fault.ts";
import { sniff, type ImageHead } from "../../sniff.ts";
import { tokensOf, usageSeen } from "../usage.ts";

export const relay = (sink: RelaySink, to: AnswerContext): Relay =>
  to.stream ? streamed(sink, to) : wholly(sink, to);

const MODEL = needle("model");
const USAGE = needle("usage");
const DATA = needle("data");

function wholly(sink: RelaySink, to: AnswerContext): Relay {
  return {
    between: true,
    push(body) {
      const from = body.indexOf(123);
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

function counted(body: Buffer, said: JsonObject | undefined): ReturnType<typeof usageSeen> {
  const answer = parsed(body.toString("utf8"));
  if (!answer)
    return fail("upstream", "The provider's answer is not a JSON object.", { code: "bad_answer" });
  if (object(answer["error"]) && !answer["data"]) throwFailure(answer);
  const pictures = list(answer["data"]).flatMap((item) => pictureIn(object(item)) ?? []);
  if (pictures.length === 0)
    fail("upstream", "The provider answered without an image.", { code: "no_image" });
  return usageSeen(said, pictures);
}

/** As the other lane takes it: bytes, or an address of which nothing is known. */
function pictureIn(item: JsonObject | undefined): [ImageHead | undefined] | undefined {
  const base64 = text(item?.["b64_json"]);
  if (base64) return [sniff({ base64 })];
  return text(item?.["url"]) ? [undefined] : undefined;
}

const PARTIAL = "image_generation.partial_image";

function streamed(sink: RelaySink, to: AnswerContext): Relay {
  const out = gather((b) => sink.bytes(b));
  const wanted = number(to.body["n"]) ?? 1;
  const seen: (ImageHead | undefined)[] = [];
  let usage: Usage | undefined;
  let over = false;

  const finish = (): void => {
    out.flush();
    over = true;
    sink.usage(usage ? { type: "usage", usage } : usageSeen(undefined, seen));
    sink.finish("stop");
  };
  const events = frames((b, from, to) => {
    const bytes = b.subarray(from, to);
    const event = eventOf(bytes);
    if (event && event.data !== "[DONE]") {
      // A partial image says nothing that is counted.
      if (event.event === PARTIAL) sink.content();
      else completed(parsed(event.data));
    }
    out.add(bytes);
  }, CAP);
  const completed = (said: JsonObject | undefined): void => {
    if (!said)
      return fail("upstream", "An event of the provider's stream is not a JSON object.", {
        code: "bad_stream",
      });
    if (said["type"] === "error" || object(said["error"])) {
      out.flush();
      throwFailure(said);
    }
    const picture = pictureIn(said);
    if (!picture) return;
    sink.content();
    if (text(said["type"])?.endsWith(".partial_image")) return;
    seen.push(...picture);
    usage = sum(usage, tokensOf(object(said["usage"])));
    if (!over && seen.length >= wanted) finish();
  };

  return {
    get between() {
      return events.between;
    },
    push(chunk) {
      try {
        events.push(chunk);
      } finally {
        out.flush();
      }
    },
    end() {
      events.end();
      if (!over) {
        if (seen.length === 0)
          fail("upstream", "The provider's stream ended before its image did.", {
            code: "truncated",
          });
        finish();
      }
      out.flush();
    },
    fail(f: Fault) {
      sink.bytes(Buffer.from(failure(f, to)));
    },
  };
}
