// Debian's Chromium, controlled by a test.
import axeCore from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";

/** `TOLLGATE_CHROMIUM`: another one. */
export const openBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: process.env["TOLLGATE_CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--use-fake-device-for-media-stream"],
  });

/** Problems reported by a page: script errors, console lines, and policy violations. */
export function complaints(page: Page): string[] {
  const found: string[] = [];
  page.on("console", (line) => line.type() === "error" && found.push(line.text()));
  page.on("pageerror", (error) => found.push(`${error.stack ?? error}`));
  return found;
}

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly {
    readonly target: readonly string[];
    readonly failureSummary: string;
  }[];
}

/**
 * Findings of axe, one per line. Through the debugger, because the page's own policy allows no
 * other script.
 */
export async function axe(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  try {
    const run = async (expression: string) => {
      const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
        expression,
        awaitPromise: true,
        returnByValue: true,
        allowUnsafeEvalBlockedByCSP: true,
      });
      if (exceptionDetails)
        throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value as unknown;
    };
    await run(`${axeCore.source};undefined`);
    const said = await run(
      "axe.run(document, { resultTypes: ['violations'] }).then((found) => JSON.stringify(found.violations))",
    );
    return (JSON.parse(said as string) as Violation[]).map(({ id, help, nodes }) => {
      const [first] = nodes;
      const where = nodes.slice(0, 3).map(({ target }) => target.join(" "));
      return `${id}: ${help}: ${nodes.length} × ${where.join(" | ")}: ${first?.failureSummary}`;
    });
  } finally {
    await session.detach();
  }
}

const TOO_WIDE = `(() => {
  const wide = document.documentElement.clientWidth;
  const by = document.documentElement.scrollWidth - wide;
  const of = by <= 0 ? [] : [...document.querySelectorAll("body *")]
    .filter((each) => each.getBoundingClientRect().right > wide + 1 && !each.closest(".scroll, .code, .choice"))
    .slice(0, 5)
    .map((each) => each.tagName.toLowerCase() + "." + each.className);
  return { by, of };
})()`;

/** How far the page is wider than its window, and the elements that overflow. */
export const overflow = (page: Page): Promise<{ by: number; of: string[] }> =>
  page.evaluate(TOO_WIDE);
