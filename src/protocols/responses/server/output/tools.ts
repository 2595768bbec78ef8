import type { JsonObject, OpenBlock } from "../../../../plugin/index.ts";
import { parseObject, asText, asObject } from "../../../json-values.ts";
import { toBase64 } from "../../../media-url.ts";
import { seal } from "../../../proof-envelope.ts";
import { callId, ORIGIN } from "../../constants.ts";
import { addItem, finishItem, headOf, type OutputContext, type OutputItem } from "./item.ts";
import { itemId } from "../response-object.ts";

export function callItem(
  block: Extract<OpenBlock, { type: "call" }>,
  index: number,
  desk: OutputContext,
): OutputItem {
  const declared = desk.restoreName(block.name);
  const custom = declared.custom || block.tool === "custom";
  // For providers that only support functions, a custom tool was wrapped in a function with one
  // text argument. The text is unwrapped here.
  const wrapped = custom && block.tool === "function";
  const id = itemId(desk.to, custom ? "ctc" : "fc", index);
  const at = { item_id: id, output_index: index };
  const left: string[] = [];
  const key = custom ? "input" : "arguments";
  const kind = custom ? "response.custom_tool_call_input" : "response.function_call_arguments";
  const shape = (status: string, argsText: string): JsonObject => ({
    id,
    type: custom ? "custom_tool_call" : "function_call",
    status,
    call_id: callId(block.id),
    name: declared.name,
    ...(declared.namespace !== undefined && { namespace: declared.namespace }),
    [key]: argsText,
  });
  const head = headOf(at);
  let argsText = "";
  addItem(index, shape("in_progress", ""), desk);
  return {
    index,
    pendingProofs: left,
    isPartialSafe: false,
    accepts: () => false,
    open() {},
    inside(e) {
      if (e.type === "proof" && e.proof.origin !== ORIGIN)
        left.push(seal({ proof: e.proof, precedingBlock: "call" }));
      if (e.type !== "delta" || e.text === "") return;
      argsText += e.text;
      if (!wrapped) desk.delta(`${kind}.delta`, head, e.text, "");
    },
    close() {},
    done(cut) {
      let whole: string | undefined = argsText;
      if (wrapped) whole = unwrapCustomInput(argsText);
      else if (!custom && argsText === "") whole = "{}";
      // A truncated call is not completed, because a client would run it.
      if (cut && (custom ? !wrapped || whole === undefined : !isObject(argsText)))
        return finishItem(index, shape("incomplete", wrapped ? "" : argsText), desk);
      whole ??= argsText;
      if (wrapped) desk.delta(`${kind}.delta`, head, whole, "");
      desk.write(`${kind}.done`, {
        ...at,
        ...(!custom && { name: declared.name }),
        [key]: whole,
      });
      return finishItem(index, shape("completed", whole), desk);
    },
  };
}

const isObject = (args: string): boolean => parseObject(args) !== undefined;

function unwrapCustomInput(args: string): string | undefined {
  return asText(parseObject(args)?.["input"]);
}

/**
 * Returns an item for an image that the model made. The item begins with the first bytes, because
 * it cannot contain a URL.
 */
export function imageItem(index: number, desk: OutputContext): OutputItem {
  const id = itemId(desk.to, "ig", index);
  const at = { item_id: id, output_index: index };
  const kind = "response.image_generation_call";
  let note: string | undefined;
  let begun = false;
  const shape = (status: string, result: string | null): JsonObject => ({
    id,
    type: "image_generation_call",
    status,
    result,
    ...(note !== undefined && { revised_prompt: note }),
  });
  let result: string | null = null;
  let partials = 0;
  const begin = () => {
    if (begun) return;
    begun = true;
    addItem(index, shape("in_progress", null), desk);
    desk.write(`${kind}.in_progress`, at);
    desk.write(`${kind}.generating`, at);
  };
  return {
    index,
    pendingProofs: [],
    isPartialSafe: true,
    accepts: () => false,
    open() {},
    inside(e) {
      if (e.type !== "media") return;
      const base64 = toBase64(e.media);
      if (base64 === undefined) return desk.to.reportLoss("output.image", "dropped");
      if (base64 === "") return;
      begin();
      if (e.partial)
        desk.write(`${kind}.partial_image`, {
          ...at,
          partial_image_index: partials++,
          partial_image_b64: base64,
        });
      else {
        result = base64;
        note = e.note;
      }
    },
    close() {
      if (begun) desk.write(`${kind}.completed`, at);
    },
    // Partial images alone are not a result. Strict readers require a string nevertheless.
    done: () =>
      begun
        ? finishItem(index, shape(result === null ? "failed" : "completed", result ?? ""), desk)
        : undefined,
  };
}

/**
 * Returns an item for a tool that the provider ran. Items of this protocol are forwarded unchanged.
 * Web search is the only tool of other vendors that this protocol can express.
 */
export function hostedToolItem(
  origin: string,
  raw: JsonObject,
  index: number,
  desk: OutputContext,
): OutputItem | undefined {
  if (origin === ORIGIN) {
    const id = asText(raw["id"]) || itemId(desk.to, "item", index);
    const item = { ...raw, id };
    addItem(index, item, desk);
    return staticItem(index, () => finishItem(index, item, desk));
  }
  if (raw["type"] !== "server_tool_use" || raw["name"] !== "web_search") {
    if (!String(raw["type"]).startsWith("web_search"))
      desk.to.reportLoss(`output.${origin}`, "dropped", "unknown_content");
    return undefined;
  }
  const id = itemId(desk.to, "ws", index);
  const at = { item_id: id, output_index: index };
  const kind = "response.web_search_call";
  let query = asText(asObject(raw["input"])?.["query"]);
  let textContent = "";
  const shape = (status: string) => ({
    id,
    type: "web_search_call",
    status,
    action: { type: "search", query: query ?? "" },
  });
  addItem(index, shape("in_progress"), desk);
  desk.write(`${kind}.in_progress`, at);
  desk.write(`${kind}.searching`, at);
  return {
    ...staticItem(index, () => {
      query ??= asText(parseObject(textContent)?.["query"]);
      desk.write(`${kind}.completed`, at);
      return finishItem(index, shape("completed"), desk);
    }),
    inside(e) {
      if (e.type === "delta") textContent += e.text;
    },
  };
}

const staticItem = (index: number, done: () => JsonObject): OutputItem => ({
  index,
  pendingProofs: [],
  isPartialSafe: true,
  accepts: () => false,
  open() {},
  inside() {},
  close() {},
  done,
});
