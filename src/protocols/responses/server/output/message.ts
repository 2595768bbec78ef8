import type { Json, JsonObject, Proof } from "../../../../plugin/index.ts";
import { seal } from "../../../proof-envelope.ts";
import { itemId } from "../response-object.ts";
import { annotationOf } from "../../parts.ts";
import { asList, asNumber, asObject, asText } from "../../../json-values.ts";
import { ORIGIN } from "../../constants.ts";
import { addItem, finishItem, headOf, type OutputContext, type OutputItem } from "./item.ts";

const NO_LOGPROBS = ',"logprobs":[]';

/** Returns a message item. Adjacent text and refusal blocks are parts of one message. */
export function messageItem(index: number, desk: OutputContext): OutputItem {
  const id = itemId(desk.to, "msg", index);
  const at = { item_id: id, output_index: index };
  const content: JsonObject[] = [];
  const left: string[] = [];
  const shape = (status: string) => ({ id, type: "message", status, role: "assistant", content });
  let refusal = false;
  let head = "";
  let textContent = "";
  let annotations: Json[] = [];
  let spans: Json[] = [];
  let logprobs: Json[] = [];
  const place = () => ({ ...at, content_index: content.length });
  const part = (): JsonObject =>
    refusal
      ? { type: "refusal", refusal: textContent }
      : { type: "output_text", text: textContent, annotations, logprobs };
  const annotate = (annotation: JsonObject) => {
    desk.write("response.output_text.annotation.added", {
      ...place(),
      annotation_index: annotations.length,
      annotation,
    });
    annotations.push(annotation);
  };
  addItem(index, shape("in_progress"), desk);
  return {
    index,
    pendingProofs: left,
    isPartialSafe: true,
    accepts: (block) => block.type === "text" || block.type === "refusal",
    open(block) {
      refusal = block.type === "refusal";
      textContent = "";
      annotations = [];
      spans = [];
      logprobs = [];
      head = headOf(place());
      desk.write("response.content_part.added", { ...place(), part: part() });
    },
    inside(e) {
      if (e.type === "delta") {
        textContent += e.text;
        if (refusal) return desk.delta("response.refusal.delta", head, e.text, "");
        let tail = NO_LOGPROBS;
        if (e.logprobs) {
          const convertedLogprobs = e.logprobs.map(toLogprob);
          for (const one of convertedLogprobs) logprobs.push(one);
          tail = `,"logprobs":${JSON.stringify(convertedLogprobs)}`;
        }
        desk.delta("response.output_text.delta", head, e.text, tail);
      } else if (e.type === "cite" && !refusal) {
        const annotation = annotationOf(e.citation);
        if (annotation && isPlaced(annotation)) annotate(annotation);
        else spans.push(annotation ?? e.citation);
      } else if (e.type === "proof") {
        if (e.proof.origin !== ORIGIN) left.push(seal({ proof: e.proof, precedingBlock: "text" }));
      }
    },
    close() {
      const length = spans.length > 0 ? countCodePoints(textContent) : 0;
      for (const citation of spans) {
        const annotation = toSpanCitation(citation, length);
        if (annotation) annotate(annotation);
        else desk.to.reportLoss("citations", "dropped");
      }
      if (refusal) desk.write("response.refusal.done", { ...place(), refusal: textContent });
      else desk.write("response.output_text.done", { ...place(), text: textContent, logprobs });
      desk.write("response.content_part.done", { ...place(), part: part() });
      content.push(part());
    },
    done: (cut) => finishItem(index, shape(cut ? "incomplete" : "completed"), desk),
  };
}

/**
 * Whether a URL citation has a title and a position, which readers of this protocol require. Some
 * providers omit them.
 */
const isPlaced = (annotation: JsonObject): boolean =>
  annotation["type"] !== "url_citation" ||
  (asText(annotation["title"]) !== undefined &&
    asNumber(annotation["start_index"]) !== undefined &&
    asNumber(annotation["end_index"]) !== undefined);

/**
 * Converts log probabilities. In other protocols the bytes and alternatives can be null or missing.
 * In this protocol, both are lists.
 */
function toLogprob(raw: Json): Json {
  const token = asObject(raw);
  if (!token) return raw;
  return {
    ...token,
    bytes: asList(token["bytes"]),
    top_logprobs: asList(token["top_logprobs"]).map((other) => {
      const o = asObject(other);
      return o ? { ...o, bytes: asList(o["bytes"]) } : other;
    }),
  };
}

/**
 * Converts a citation of another vendor. Other vendors cite passages of a source. This protocol
 * cites positions in the response, so the citation covers the whole text.
 */
function toSpanCitation(citation: Json, length: number): JsonObject | undefined {
  const c = asObject(citation);
  const url = asText(c?.["url"]);
  if (url === undefined) return undefined;
  const title = asText(c?.["title"]) ?? url;
  return { type: "url_citation", url, title, start_index: 0, end_index: length };
}

/** Returns the number of characters. A surrogate pair counts as one. */
function countCodePoints(textContent: string): number {
  let points = 0;
  for (const _ of textContent) points++;
  return points;
}

export function reasoningItem(digest: boolean, index: number, desk: OutputContext): OutputItem {
  const id = itemId(desk.to, "rs", index);
  const at = { item_id: id, output_index: index };
  const raw = !digest && desk.dialect.reasoning === "text";
  let proof: Proof | undefined;
  let textContent = "";
  let begun = false;
  const place = raw ? { ...at, content_index: 0 } : { ...at, summary_index: 0 };
  const head = headOf(place);
  const part = () => ({ type: raw ? "reasoning_text" : "summary_text", text: textContent });
  const kind = raw ? "response.reasoning_text" : "response.reasoning_summary_text";
  const frame = raw ? "response.content_part" : "response.reasoning_summary_part";
  addItem(index, { id, type: "reasoning", summary: [] }, desk);
  return {
    index,
    pendingProofs: [],
    isPartialSafe: true,
    accepts: () => false,
    open() {},
    inside(e) {
      if (e.type === "proof") proof = e.proof;
      if (e.type !== "delta" || e.text === "") return;
      if (!begun) desk.write(`${frame}.added`, { ...place, part: part() });
      begun = true;
      textContent += e.text;
      desk.delta(`${kind}.delta`, head, e.text, "");
    },
    close() {
      if (!begun) return;
      desk.write(`${kind}.done`, { ...place, text: textContent });
      desk.write(`${frame}.done`, { ...place, part: part() });
    },
    done(cut) {
      const encrypted = encryptedContent(proof, textContent, digest);
      const item: JsonObject = {
        id,
        type: "reasoning",
        summary: begun && !raw ? [part()] : [],
        ...(begun && raw && { content: [part()] }),
        // Readers expect a string or no member. Some reject null.
        ...(encrypted !== undefined && { encrypted_content: encrypted }),
        ...(cut && { status: "incomplete" }),
      };
      return finishItem(index, item, desk);
    },
  };
}

/**
 * Returns the encrypted content. A proof of this protocol is sent without an envelope. Another
 * provider's proof is sealed together with the text that it signs. Unsigned text is sealed too,
 * because clients drop reasoning without encrypted content, and some providers need it back.
 */
function encryptedContent(
  proof: Proof | undefined,
  textContent: string,
  digest: boolean,
): string | undefined {
  if (proof?.origin === ORIGIN) return proof.data;
  if (!proof && textContent === "") return undefined;
  return seal({
    proof,
    text: textContent === "" ? undefined : textContent,
    summary: digest || undefined,
  });
}
