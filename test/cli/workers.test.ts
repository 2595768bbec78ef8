// More than one process with limits of its own each would let more through than a key may use: refused, where it stands.
import { expect, test } from "vitest";
import { folder } from "./cli.ts";

test.each(["2", "auto"])("workers: %s is refused by check and serve alike", async (workers) => {
  await using here = await folder();
  await here.write("gateway.yaml", `workers: ${workers}\nproviders:\n  demo: { use: demo }\n`);
  for (const args of [["check"], ["serve", "--port", "0"]]) {
    const { code, stdout, stderr } = await here.tollgate(args);
    expect(code).not.toBe(0);
    expect(stdout + stderr).toMatch(/gateway\.yaml:1:10 +error +workers: .*one process/);
  }
});
