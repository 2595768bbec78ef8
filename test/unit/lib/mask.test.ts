import { expect, it } from "vitest";
import { SecretMask } from "../../../src/lib/log/secret-mask.ts";
import { ownCpuMs } from "../../kit/process/cpu-time.ts";

it.each([
  ["blanks", " ".repeat(1 << 16)],
  ["tokens", "Bearer ".repeat(1 << 13)],
  ["a long word", `Bearer ${"x".repeat(1 << 16)}`],
  ["the start of a key, over and over", "sk-".repeat(1 << 14)],
])("%s take linear time", (_, text) => {
  const mask = new SecretMask();
  mask.add(["a-secret-of-ours"]);
  const began = ownCpuMs();
  mask.maskText(text);
  expect(ownCpuMs() - began).toBeLessThan(1_000);
});
