import type { Json, JsonObject } from "../../../../plugin/index.ts";
import { seal } from "../../../envelope.ts";
import { itemId } from "../object.ts";
import { annotationOf } from "../../parts.ts";
import { list, number, object, text } from "../../../json.ts";
import { ORIGIN } from "../../words.ts";
import { announce, conclude, headOf, type OutputContext, type Item } from "./item.ts";

const NO_LOGPROBS = ',"logprobs":[]';

/** Adjacent texts and refusals are parts of one message. */
export function message(index: number, desk: OutputContext): Item {
  const id = itemId(desk.to, "msg", index);
  const at = { item_id: id, output_index: index };
  const content: JsonObject[] = [];
  const left: string[] = [];
  const shape = (status: string) => ({ id, type: "message", status, role: "assistant", content });
  let refusal = false;
  let head = "";
  let said = "";
  let annotations: Json[] = [];
  let spans: Json[] = [];
  let logprobs: Json[] = [];
  const place = () => ({ ...at, content_index: content.length });
  const part = (): JsonObject =>
    refusal
      ? { type: "refusal", refusal: said }
      : { type: "output_text", text: said, annotations, logprobs };
  const annotate = (annotation: JsonObject) => {
    desk.say("response.output_text.annotation.added", {
      ...place(),
      annotation_index: annotations.length,
      annotation,
    });
    annotations.push(annotation);
  };
  announce(index, shape("in_progress"), desk);
  return {
    index,
    left,
    harmless: true,
    takes: (block) => block.type === "text" || block.type === "refusal",
    open(block) {
      refusal = block.type === "refusal";
      said = "";
      annotations = [];
      spans = [];
      logprobs = [];
      head = headOf(place());
      desk.say("response.content_part.added", { ...place(), part: part() });
    },
    inside(e) {
      if (e.type === "delta") {
        said += e.text;
        if (refusal) return desk.delta("response.refusal.delta", head, e.text, "");
        let tail = NO_LOGPROBS;
        if (e.logprobs) {
          const told = e.logprobs.map(likelihood);
          for (const one of told) logprobs.push(one);
          tail = `,"logprobs":${JSON.stringify(told)}`;
        }
        desk.delta("response.output_text.delta", head, e.text, tail);
      } else if (e.type === "cite" && !refusal) {
        const annotation = annotationOf(e.citation);
        if (annotation && isPlaced(annotation)) annotate(annotation);
        else spans.push(annotation ?? e.citation);
      } else if (e.type === "proof") {
        if (e.proof.origin !== ORIGIN) left.push(seal({ proof: e.proof, of: "text" }));
      }
    },
    close() {
      const length = spans.length > 0 ? pointsIn(said) : 0;
      for (const citation of spans) {
        const annotation = spanning(citation, length);
        if (annotation) annotate(annotation);
        else desk.to.lose("citations", "dropped");
      }
      if (refusal) desk.say("response.refusal.done", { ...place(), refusal: said });
      else desk.say("response.output_text.done", { ...place(), text: said, logprobs });
      desk.say("response.content_part.done", { ...place(), part: part() });
      content.push(part());
    },
    done: (cut) => conclude(index, shape(cut ? "incomplete" : "completed"), desk),
  };
}

/** Some upstreams cite an address and leave out its title or its place, which readers here expect. */
const isPlaced = (annotation: JsonObject): boolean =>
  annotation["type"] !== "url_citation" ||
  (text(annotation["title"]) !== undefined &&
    number(annotation["start_index"]) !== undefined &&
    number(annotation["end_index"]) !== undefined);

/** Bytes and alternatives may be null or missing on other wires; on this one both are lists. */
function likelihood(raw: Json): Json {
  const token = object(raw);
  if (!token) return raw;
  return {
    ...token,
    bytes: list(token["bytes"]),
    top_logprobs: list(token["top_logprobs"]).map((other) => {
      const o = object(other);
      return o ? { ...o, bytes: list(o["bytes"]) } : other;
    }),
  };
}

/** Another vendor cites passages where this one cites places in the answer: the whole text stands for the place. */
function spanning(citation: Json, length: number): JsonObject | undefined {
  const c = object(citation);
  const url = text(c?.["url"]);
  if (url === undefined) return undefined;
  const title = text(c?.["title"]) ?? url;
  return { type: "url_citation", url, title, start_index: 0, end_index: length };
}

/** Characters, where a pair of surrogates is one. */
function pointsIn(said: string): number {
  let points = 0;
  for (const _ of said) points++;
  return points;
}
