// The verbatim lane: a host's bytes pass when they are what the client asked for. Hosts that do not know `encoding_format` answer
// with numbers whatever is asked, and some leave out a count that clients rely on: such an answer is written anew, with all else
// that the host said in it.
import type { Fault } from "../../../model/error.ts";
import type { JsonObject, Json } from "../../../model/values.ts";
import type { AnswerContext, Relay, RelaySink } from "../../../plugin/protocol.ts";
import { number, object, text } from "../../json.ts";
import { fault } from "../../responses/server/fault.ts";
import { named } from "../../sse/index.ts";
import { usageOf, usageTo } from "../usage.ts";
import { checked, isWritten, wishOf, written } from "../vectors.ts";
import { answerIn, vectorsIn } from "./whole.ts";

export function relay(sink: RelaySink, to: AnswerContext): Relay {
  return {
    between: true,
    push(body) {
      const answer = answerIn(body);
      const said = object(answer["usage"]);
      const seen = usageOf(said);
      const id = text(answer["id"]);
      if (id !== undefined) sink.start(id);
      // What was read is billed, though its vectors may be no answer.
      sink.usage({ type: "usage", usage: seen });
      const wish = wishOf(to.body);
      const vectors = checked(vectorsIn(answer), wish);
      const data = vectors.every((vector) => isWritten(vector, wish))
        ? answer["data"]
        : vectors.map((vector, index) => ({
            object: "embedding",
            index,
            embedding: written(vector, wish) as Json,
          }));
      sink.content();
      const usage = { ...seen, ...sink.finish("stop") };
      const counted = number(said?.["prompt_tokens"]) !== undefined;
      if (counted && data === answer["data"]) return named(body, to.model, (b) => sink.bytes(b));
      const anew: JsonObject = {
        ...answer,
        object: "list",
        data,
        model: to.model,
        usage: counted ? said : { ...said, ...usageTo(usage) },
      };
      return sink.bytes(Buffer.from(JSON.stringify(anew)));
    },
    end() {},
    fail(f: Fault) {
      sink.bytes(Buffer.from(JSON.stringify(fault(f, to).body)));
    },
  };
}
