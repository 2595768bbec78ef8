// A client's words in the common vocabulary.
import type { RerankRequest } from "../../../model/request.ts";
import type { Body, Json } from "../../../model/values.ts";
import { flag, list, number, present, text } from "../../json.ts";
import { unknownIn } from "../../strangers.ts";
import { COMMON } from "../words.ts";

export const request = (body: Body): RerankRequest =>
  present({
    kind: "rerank" as const,
    model: text(body["model"]) ?? "",
    stream: false,
    query: text(body["query"]) ?? "",
    documents: list(body["documents"]) as RerankRequest["documents"],
    most: number(body["top_n"]) ?? number(body["top_k"]),
    returned: flag(body["return_documents"]),
    perDocument: number(body["max_tokens_per_doc"]),
    truncate: flag(body["truncation"]),
    user: text(body["user"]),
    rest: unknownIn(
      body,
      (name) => (body[name] as Json | undefined) === null || COMMON.includes(name),
    ),
    ext: {},
  });
