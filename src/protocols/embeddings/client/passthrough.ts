// Forwards responses in passthrough mode if they have the form that the client requested. Backends
// without `encoding_format` always return numbers, and some omit a count that clients rely on. Such
// a response is re-encoded, and its other fields are kept.
import type { Fault } from "../../../model/error.ts";
import type { JsonObject, Json } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { asNumber, asObject, asText } from "../../json-values.ts";
import { encodeFault } from "../../responses/server/fault.ts";
import { replaceModelName } from "../../sse/index.ts";
import { usageOf, usageTo } from "../usage.ts";
import {
  validateEmbeddings,
  isInRequestedFormat,
  readExpectation,
  encodeEmbedding,
} from "../embedding-values.ts";
import { parseResponseObject, parseEmbeddings } from "./response.ts";

export function createPassthrough(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  return {
    isBetweenEvents: true,
    push(body) {
      const answer = parseResponseObject(body);
      const usageReport = asObject(answer["usage"]);
      const seen = usageOf(usageReport);
      const id = asText(answer["id"]);
      if (id !== undefined) sink.reportStart(id);
      // The input is billed even if the vectors are invalid, so usage is reported before
      // validation.
      sink.reportUsage({ type: "usage", usage: seen });
      const wish = readExpectation(to.body);
      const vectors = validateEmbeddings(parseEmbeddings(answer), wish);
      const data = vectors.every((vector) => isInRequestedFormat(vector, wish))
        ? answer["data"]
        : vectors.map((vector, index) => ({
            object: "embedding",
            index,
            embedding: encodeEmbedding(vector, wish) as Json,
          }));
      sink.reportContent();
      const usage = { ...seen, ...sink.reportFinish("stop") };
      const counted = asNumber(usageReport?.["prompt_tokens"]) !== undefined;
      if (counted && data === answer["data"])
        return replaceModelName(body, to.model, (b) => sink.write(b));
      const anew: JsonObject = {
        ...answer,
        object: "list",
        data,
        model: to.model,
        usage: counted ? usageReport : { ...usageReport, ...usageTo(usage) },
      };
      return sink.write(Buffer.from(JSON.stringify(anew)));
    },
    end() {},
    writeFault(f: Fault) {
      sink.write(Buffer.from(JSON.stringify(encodeFault(f, to).body)));
    },
  };
}
