// The words of this wire: its name, and the fields that it knows.
import { isMultiplierField } from "../requested-amounts.ts";

export const ID = "images";

/** What a route to have pictures changed calls itself: only endpoints with a path of that name are asked. */
export const EDITS = "edits";

/** In the common vocabulary, under another name or the same. */
export const COMMON_FIELDS: readonly string[] = [
  "model",
  "prompt",
  "n",
  "size",
  "quality",
  "response_format",
  "stream",
  "partial_images",
  "background",
  "output_format",
  "output_compression",
  "seed",
  "user",
];

/** Where pictures stand that are to be changed. */
export const IMAGE_FIELDS: readonly string[] = ["image", "images", "mask"];

/** Documented here and nowhere else: they go back to this wire only. */
export const PROTOCOL_FIELDS: readonly string[] = [
  "input_fidelity",
  "moderation",
  "style",
  "safety_identifier",
  "complexity",
  "frame_count",
  "frame_duration_ms",
  "svg",
];

/** All that this wire knows, in any dialect of it. */
export const knowsField = (field: string): boolean =>
  COMMON_FIELDS.includes(field) ||
  IMAGE_FIELDS.includes(field) ||
  PROTOCOL_FIELDS.includes(field) ||
  isMultiplierField(field);
