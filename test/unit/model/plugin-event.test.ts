import { expect, it } from "vitest";
import { createPluginEvent } from "../../../src/model/plugin-event.ts";

it("copies the data of an event, and rejects other names and large data", () => {
  const data = { provider: "openai", causes: { outside: "1" } };
  const event = createPluginEvent("observers.reconcile", "bill_differs", data);
  expect(event).toEqual({
    type: "plugin_event",
    plugin: "observers.reconcile",
    name: "bill_differs",
    data,
  });
  expect(event.data).not.toBe(data);
  for (const name of ["", "Bill", "bill differs", "bill.differs", "a".repeat(65)])
    expect(() => createPluginEvent("x", name, {})).toThrow(/not a valid name/);
  expect(() => createPluginEvent("x", "a", { text: "x".repeat(4_096) })).toThrow(
    /larger than 4096/,
  );
});
