// A row serves its own metadata: each pattern of an endpoint matches a model, and each model has an
// endpoint for its type.
import { describe, expect, it } from "vitest";
import { ALL_ROWS, rowProviders } from "../../plugins/providers/provider-rows.ts";
import { createTestContext } from "tollgate/testing";

const SOMEWHERE = { base_url: "https://x.example/v1", api_key: "k" };

describe.each(Object.entries(rowProviders))("%s", (name, row) => {
  it("serves every model in its metadata", async () => {
    const { endpoints } = await row.setup(
      SOMEWHERE as never,
      createTestContext({ id: name }) as never,
    );
    const lost = (row.facts?.models ?? [])
      .filter(({ model, operation = "chat" }) => {
        const speaking = endpoints.filter((one) => "protocol" in one);
        const fitting = speaking.filter((one) => one.protocol.operationSpec.name === operation);
        return fitting.length > 0 && !fitting.some((one) => one.servesModel?.(model) ?? true);
      })
      .map(({ model }) => model);
    expect(lost).toEqual([]);
  });
});

it("both clouds of Seedream serve all its models", async () => {
  for (const name of ["byteplus", "ark"]) {
    expect(ALL_ROWS.map((row) => row.name)).toContain(name);
    const { endpoints } = await rowProviders[name]!.setup(
      SOMEWHERE as never,
      createTestContext({ id: name }) as never,
    );
    const draws = endpoints.find(
      (one) => "protocol" in one && one.protocol.operationSpec.name === "image",
    );
    for (const model of ["seedream-5-0-lite", "seedream-4-5", "doubao-seedream-4-0", "seedream"])
      expect(draws?.servesModel?.(model), `${name}: ${model}`).toBe(true);
    expect(draws?.servesModel?.("seed-1-6")).toBe(false);
  }
});
