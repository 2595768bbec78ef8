import { afterAll, describe, it } from "vitest";
import { four } from "./four.ts";
import { toolRunner } from "./tool-runner.ts";

describe("Anthropic's newest SDK", async () => {
  const at = await four();
  afterAll(() => at[Symbol.asyncDispose]());
  it.each(toolRunner(at))("$name", ({ run }) => run());
});
