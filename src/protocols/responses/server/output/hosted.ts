import type { JsonObject } from "../../../../plugin/index.ts";
import { itemId } from "../object.ts";
import { object, parsed, text } from "../../../json.ts";
import { base64Of } from "../../../media.ts";
import { ORIGIN } from "../../words.ts";
import { announce, conclude, type OutputContext, type Item } from "./item.ts";

/** An image that the model made. There is an item once there are bytes: an address has no place in one. */
export function picture(index: number, desk: OutputContext): Item {
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
    announce(index, shape("in_progress", null), desk);
    desk.say(`${kind}.in_progress`, at);
    desk.say(`${kind}.generating`, at);
  };
  return {
    index,
    left: [],
    harmless: true,
    takes: () => false,
    open() {},
    inside(e) {
      if (e.type !== "media") return;
      const base64 = base64Of(e.media);
      if (base64 === undefined) return desk.to.lose("output.image", "dropped");
      if (base64 === "") return;
      begin();
      if (e.partial)
        desk.say(`${kind}.partial_image`, {
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
      if (begun) desk.say(`${kind}.completed`, at);
    },
    // Drafts alone are no picture; strict readers want a text there all the same.
    done: () =>
      begun
        ? conclude(index, shape(result === null ? "failed" : "completed", result ?? ""), desk)
        : undefined,
  };
}

/** Tools that the upstream ran itself. Ours go as they are; of another vendor's, only a search of the web has a shape here. */
export function hosted(
  origin: string,
  raw: JsonObject,
  index: number,
  desk: OutputContext,
): Item | undefined {
  if (origin === ORIGIN) {
    const id = text(raw["id"]) || itemId(desk.to, "item", index);
    const item = { ...raw, id };
    announce(index, item, desk);
    return still(index, () => conclude(index, item, desk));
  }
  if (raw["type"] !== "server_tool_use" || raw["name"] !== "web_search") {
    if (!String(raw["type"]).startsWith("web_search"))
      desk.to.lose(`output.${origin}`, "dropped", "unknown_content");
    return undefined;
  }
  const id = itemId(desk.to, "ws", index);
  const at = { item_id: id, output_index: index };
  const kind = "response.web_search_call";
  let query = text(object(raw["input"])?.["query"]);
  let said = "";
  const shape = (status: string) => ({
    id,
    type: "web_search_call",
    status,
    action: { type: "search", query: query ?? "" },
  });
  announce(index, shape("in_progress"), desk);
  desk.say(`${kind}.in_progress`, at);
  desk.say(`${kind}.searching`, at);
  return {
    ...still(index, () => {
      query ??= text(parsed(said)?.["query"]);
      desk.say(`${kind}.completed`, at);
      return conclude(index, shape("completed"), desk);
    }),
    inside(e) {
      if (e.type === "delta") said += e.text;
    },
  };
}

const still = (index: number, done: () => JsonObject): Item => ({
  index,
  left: [],
  harmless: true,
  takes: () => false,
  open() {},
  inside() {},
  close() {},
  done,
});
