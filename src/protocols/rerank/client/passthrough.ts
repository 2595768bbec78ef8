// Passthrough mode: forwards a backend's bytes if they are sorted and contain what the client
// requested. If documents are missing, unwanted, or too many, the ranking is encoded again and all
// other members are kept.
import type { Fault } from "../../../model/error.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type {
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../../plugin/protocol.ts";
import { isObject, asList, asText } from "../../json-values.ts";
import { encodeFault } from "../../responses/server/fault.ts";
import { replaceModelName } from "../../sse/index.ts";
import {
  toDocumentObject,
  validateRanking,
  readRankingExpectation,
  type RankingExpectation,
} from "../ranking.ts";
import { metaTo, tokensTo, usageOf } from "../usage.ts";
import { parseRankings } from "./response.ts";

export function createPassthrough(sink: PassthroughSink, to: ResponseContext): PassthroughStream {
  return {
    isBetweenEvents: true,
    push(body) {
      const { answer, rows } = parseRankings(body);
      const seen = usageOf(answer);
      const id = asText(answer["id"]);
      if (id !== undefined) sink.reportStart(id);
      // The input is billed even if the ranking turns out to be invalid.
      sink.reportUsage({ type: "usage", usage: seen });
      const wish = readRankingExpectation(to.body);
      const due = validateRanking(rows, wish);
      sink.reportContent();
      const usage = { ...seen, ...sink.reportFinish("stop") };
      const inOrder = due.length === rows.length && due.every((one, i) => one === rows[i]);
      if (inOrder && hasRequestedDocuments(answer["results"], wish))
        return replaceModelName(body, to.model, (b) => sink.write(b));
      const anew: JsonObject = {
        id: to.id,
        meta: metaTo(usage),
        usage: tokensTo(usage),
        ...answer,
        model: to.model,
        results: due.map(({ index, score }) => ({
          index,
          relevance_score: score,
          ...(wish.returnDocuments && { document: toDocumentObject(wish.documents[index]) }),
        })),
      };
      return sink.write(Buffer.from(JSON.stringify(anew)));
    },
    end() {},
    writeFault(f: Fault) {
      sink.write(Buffer.from(JSON.stringify(encodeFault(f, to).body)));
    },
  };
}

/** Whether the results contain documents exactly if the client requested them. */
const hasRequestedDocuments = (
  results: Json | undefined,
  { returnDocuments }: RankingExpectation,
): boolean =>
  Array.isArray(results) &&
  asList(results).every(
    (row) => isObject(row) && (row["document"] !== undefined) === returnDocuments,
  );
