// Checks an event that a plugin reports.
import { fail } from "./error.ts";
import type { JsonObject } from "./values.ts";

const NAME = /^[a-z][a-z0-9_]{0,63}$/;
const MAX_DATA_BYTES = 4_096;

interface PluginEvent {
  readonly type: "plugin_event";
  readonly plugin: string;
  readonly name: string;
  readonly data: JsonObject;
}

/** Returns the event with a copy of its data. Throws if the event is not valid. */
export function createPluginEvent(plugin: string, name: string, data: JsonObject): PluginEvent {
  const text = JSON.stringify(data);
  if (!NAME.test(name)) fail("internal", `"${name}" is not a valid name of an event.`);
  if (Buffer.byteLength(text) > MAX_DATA_BYTES)
    fail("internal", `The data of the event ${name} is larger than ${MAX_DATA_BYTES} bytes.`);
  return { type: "plugin_event", plugin, name, data: JSON.parse(text) as JsonObject };
}
