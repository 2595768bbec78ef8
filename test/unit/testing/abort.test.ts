// The kit judges an abort by the order of events: the work ends and its connection is closed while
// the upstream is silent. The time that a busy machine needs for this is not the plugin's fault.
import { expect, it } from "vitest";
import type { Provider } from "../../../src/plugin/provider.ts";
import { checkAborts } from "../../../src/testing/conformance/operation.ts";
import type { ConformanceSubject } from "../../../src/testing/conformance/subject.ts";
import { ownCpuMs } from "../../kit/process/cpu-time.ts";

const SUBJECT = {
  credential: {},
  observed: [],
  secrets: [],
  operations: [],
} as unknown as ConformanceSubject;
const provider = (models: Provider["listModels"]) =>
  ({
    endpoints: [{ protocol: { id: "toy" }, base: "https://toy.example", auth: "none" }],
    listModels: models,
  }) as unknown as Provider;

/** As on a machine that is too busy to run this process. */
function busy(ms: number): void {
  const from = ownCpuMs();
  while (ownCpuMs() - from < ms);
}

it("passes work that ends with its signal, on a machine of any speed", async () => {
  const slow = provider(async (line) => {
    line.signal.addEventListener("abort", () => busy(300));
    await line.fetch("models");
    return [];
  });
  await checkAborts(slow, SUBJECT);
});

it("passes work that is done later, if it closes its connection immediately", async () => {
  const later = provider(async (line) => {
    await line.fetch("models").catch(async () => {
      for (let n = 0; n < 5; n++) {
        busy(10);
        await new Promise((resolve) => void setImmediate(resolve));
      }
    });
    return [];
  });
  await checkAborts(later, SUBJECT);
});

it("fails work that continues", async () => {
  const goes = provider((line) =>
    line.fetch("models").then(
      () => [],
      () => new Promise<never>(() => {}),
    ),
  );
  await expect(checkAborts(goes, SUBJECT)).rejects.toThrow(
    "models() continues after its signal was aborted",
  );
});
