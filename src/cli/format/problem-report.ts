// Formats config problems for people: file:line:column, the message, the hint, and the source
// lines.
import { relative } from "node:path";
import type { LocatedProblem } from "../../config/gateway-config.ts";
import { plural } from "../../lib/text.ts";

type Paint = (style: "red" | "yellow" | "gray" | "bold", text: string) => string;

const SEVERITY_COLORS = { error: "red", warning: "yellow", note: "gray" } as const;

/** Returns the path relative to the current directory if that is shorter. */
export function shortPath(file: string): string {
  const short = relative(process.cwd(), file);
  return short !== "" && short.length < file.length ? short : file;
}

export function formatProblems(problems: readonly LocatedProblem[], paint: Paint): string {
  return problems
    .map((problem) => {
      const { file, line, column, severity, path, message, hint, frame } = problem;
      const place = line === 0 ? shortPath(file) : `${shortPath(file)}:${line}:${column}`;
      const words = `${path === "" ? "" : `${path}: `}${message}${hint === undefined ? "" : ` — ${hint}`}`;
      const head = `${paint("bold", place)}  ${paint(SEVERITY_COLORS[severity], severity)}  ${words}`;
      return frame === undefined ? head : `${head}\n${paint("gray", frame)}`;
    })
    .join("\n");
}

export const countErrors = (problems: readonly LocatedProblem[]): number =>
  problems.filter((problem) => problem.severity === "error").length;

/** Counts problems: "2 errors, 1 warning". Returns an empty string if there are none. */
export function summarizeProblems(problems: readonly LocatedProblem[]): string {
  return (["error", "warning", "note"] as const)
    .map((severity) => [problems.filter((p) => p.severity === severity).length, severity] as const)
    .filter(([count]) => count > 0)
    .map(([count, severity]) => plural(count, severity))
    .join(", ");
}

/** Lists providers that are not mounted, with reasons: "openai (OPENAI_API_KEY is not set), …". */
export const formatUnmounted = (
  of: readonly { readonly provider: string; readonly reason: string }[],
) => of.map(({ provider, reason }) => `${provider} (${reason})`).join(", ");
