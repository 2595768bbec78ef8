// ID of this protocol and its known fields.
import { isMultiplierField } from "../requested-amounts.ts";

export const ID = "images";

/** Action of routes that edit images. Only endpoints with a path of this name are called. */
export const EDITS = "edits";

/** Fields that the common form can represent. */
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

/** Fields that contain input images. */
export const IMAGE_FIELDS: readonly string[] = ["image", "images", "mask"];

/** Fields that only this protocol documents. They are sent back only in this protocol. */
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

/** Whether this protocol has a field, in any dialect. */
export const knowsField = (field: string): boolean =>
  COMMON_FIELDS.includes(field) ||
  IMAGE_FIELDS.includes(field) ||
  PROTOCOL_FIELDS.includes(field) ||
  isMultiplierField(field);
