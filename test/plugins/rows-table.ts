// The table of backends in plugins/providers/README.md, made from the rows.
import { all } from "../../plugins/providers/rows.ts";
import type { Backend } from "../../plugins/providers/row-backend.ts";
import { OPENAI_ONLY } from "../../plugins/providers/row-dialects.ts";

type Chat = NonNullable<Backend["speaks"]["chat-completions"]>;
type Reasoning = NonNullable<Chat["reasoning"]>;

const code = (text: string) => `\`${text}\``;
const list = (parts: readonly (string | false | undefined)[]) => parts.filter(Boolean).join(", ");

/** The address, and below it what stands elsewhere. */
function spoken({ speaks }: Backend): string {
  return Object.entries(speaks)
    .map(([protocol, { base, header, serves }]) => {
      const more = list([base && code(base), header && code(header), serves && "some models"]);
      return more === "" ? protocol : `${protocol} (${more})`;
    })
    .join(", ");
}

const thought = (r: Reasoning): string =>
  list([
    r.control === "none" ? "not told" : r.control && code(r.control),
    r.effortToo && "and an effort",
    r.efforts && `${r.efforts[0]} to ${r.efforts.at(-1)}`,
    r.off === false && "always on",
  ]);

function thinking({ speaks }: Backend): string {
  const chat = speaks["chat-completions"];
  if (!chat?.reasoning) return speaks.messages?.thinking ?? "";
  const ways = new Set(
    [chat.reasoning, ...(chat.models ?? []).map((m) => m.reasoning ?? {})].map(thought),
  );
  const { echo, echoRequired } = chat.reasoning;
  return list([
    [...ways].filter(Boolean).join(" / "),
    echo && echo !== "never" && `back in ${code(echo)}${echoRequired ? ", always" : ""}`,
  ]);
}

function quirks({ speaks }: Backend): string {
  const chat: Chat = speaks["chat-completions"] ?? {};
  const { images } = speaks;
  const dropped = (chat.drop ?? []).filter((f) => !OPENAI_ONLY.some((known) => known === f));
  return [
    chat.maxTokens && code(chat.maxTokens),
    chat.usage === "none" && "counts unasked",
    chat.toolChoice && `tool choice: ${chat.toolChoice}`,
    chat.toolIds && `ids: ${chat.toolIds}`,
    chat.rename &&
      Object.entries(chat.rename)
        .map(([from, to]) => code(`${from} → ${to}`))
        .join(", "),
    chat.set &&
      list(
        Object.values(chat.set)
          .flatMap((fields) => Object.keys(fields as object))
          .map((f) => `sets ${code(f)}`),
      ),
    chat.refuse && `refuses ${list(chat.refuse.map(code))}`,
    dropped.length > 0 && `drops ${list(dropped.map(code))}`,
    chat.strictTools === true && "strict tools",
    chat.cacheMarks && `marks with ${code(chat.cacheMarks)}`,
    chat.reasoningOutside && "thoughts counted apart",
    chat.thinkTags && "thoughts in tags",
    images?.responseFormat && `pictures: ${images.responseFormat}`,
    images?.size && `sizes: ${images.size}`,
    images?.most !== undefined && `pictures at a time: ${images.most}`,
  ]
    .filter(Boolean)
    .join("; ");
}

const models = ({ models: shape }: Backend): string =>
  shape === false
    ? "no"
    : list([
        "yes",
        shape?.path && code(shape.path),
        shape?.prices && `prices ${shape.prices.replace("_", " ")}`,
      ]);

const row = (b: Backend): readonly string[] => [
  code(b.name),
  b.summary.replace(/; base_url.*/, ""),
  b.base === undefined ? "`base_url` needed" : b.base.replace(/^https:\/\//, ""),
  spoken(b),
  thinking(b),
  quirks(b),
  models(b),
  b.limits === "none" ? "`retry-after`" : b.limits,
  b.errors,
  b.stability ?? "experimental",
  list(b.unchecked ?? []),
];

const HEAD =
  "use | who | address | speaks, and where else | thinking | quirks | list of models | limits | errors | state | not checked".split(
    " | ",
  );
const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;

export const table = (): string =>
  [line(HEAD), line(HEAD.map(() => "---")), ...all.map((b) => line(row(b)))].join("\n");
