// A client's words in the common vocabulary.
import type { EmbeddingRequest } from "../../../model/request.ts";
import type { Body, Json, Opt } from "../../../model/values.ts";
import { number, present, text } from "../../json.ts";
import { unknownIn } from "../../strangers.ts";
import { taskOf } from "../tasks.ts";
import { inputsIn, typeIn } from "../vectors.ts";
import { COMMON, FORM, ID, TASK_FIELDS } from "../words.ts";

export function request(body: Body): EmbeddingRequest {
  const field = TASK_FIELDS.find((name) => taskOf(body[name]) !== undefined);
  const own: Record<string, Json> = {};
  if (text(body[FORM]) !== undefined) own[FORM] = text(body[FORM])!;
  if (field !== undefined) own[field] = text(body[field])!;
  const dtype = typeIn(body["output_dtype"]);
  const cut = truncation(body);
  return present({
    kind: "embedding" as const,
    model: text(body["model"]) ?? "",
    stream: false,
    inputs: inputsIn(body["input"]),
    dimensions: number(body["dimensions"]) ?? number(body["output_dimension"]),
    task: field === undefined ? undefined : taskOf(body[field]),
    dtype,
    truncate: cut,
    user: text(body["user"]),
    rest: unknownIn(
      body,
      (name) =>
        body[name] === null ||
        name === FORM ||
        name === field ||
        (COMMON.includes(name) &&
          (name !== "output_dtype" || dtype !== undefined) &&
          (!name.startsWith("truncat") || cut !== undefined)),
    ),
    ext: Object.keys(own).length > 0 ? { [ID]: own } : {},
  });
}

/** A switch, or one of the words of hosts that cut at either end. */
function truncation({ truncate, truncation: cuts }: Body): Opt<"none" | "start" | "end"> {
  const said = truncate ?? cuts;
  if (typeof said === "boolean") return said ? "end" : "none";
  const word = text(said)?.toLowerCase();
  return word === "none" || word === "start" || word === "end" ? word : undefined;
}
