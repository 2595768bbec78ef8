// Small defects that can be planted in a source file: each changes one expression or statement. The places come from the syntax tree, so comments, types,
// and imports are never changed.
import { parseAst } from "rolldown/parseAst";

export interface Mutation {
  readonly operator: string;
  readonly start: number;
  readonly end: number;
  readonly instead: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as Node).type === "string";

const BINARY: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "&&": "||",
  "||": "&&",
};

/** Every mutation of a source, in the order of the text. */
export function mutationsIn(source: string, file = "a.ts"): Mutation[] {
  const found: Mutation[] = [];
  const text = (node: Node) => source.slice(node.start, node.end);
  const replace = (operator: string, { start, end }: Node, instead: string) =>
    void found.push({ operator, start, end, instead });

  const visit = (node: Node): void => {
    // Types do not exist at run time.
    if (/^TS(?!AsExpression|NonNull|Satisfies)/.test(node.type)) return;
    if (/^(Import|Export(All|Named)Declaration$)/.test(node.type) && node["source"]) return;
    for (const key of ["test"]) {
      const test = node[key];
      if (isNode(test) && node.type !== "SwitchCase") replace("negate", test, `!(${text(test)})`);
    }
    if (node.type === "BinaryExpression" || node.type === "LogicalExpression")
      binary(node as Node & { operator: string; left: Node; right: Node });
    if (node.type === "ExpressionStatement" && isDroppable(node["expression"] as Node))
      replace("drop", node, ";");
    if (node.type === "Literal" && typeof node["value"] === "number")
      replace("constant", node, String(node["value"] === 0 ? 1 : (node["value"] as number) + 1));
    if (node.type === "Literal" && typeof node["value"] === "boolean")
      replace("constant", node, String(!node["value"]));
    if (/Function/.test(node.type)) early(node["body"]);
    for (const [key, value] of Object.entries(node))
      // A property's name is not a constant.
      if (key !== "key" || node["computed"] === true)
        for (const child of [value].flat()) if (isNode(child)) visit(child);
  };

  const binary = (node: Node & { operator: string; left: Node; right: Node }) => {
    const instead = BINARY[node.operator];
    if (instead === undefined || (node.operator === "+" && isText(node))) return;
    const between = source.slice(node.left.end, node.right.start);
    found.push({
      operator: node.operator,
      start: node.left.end,
      end: node.right.start,
      instead: between.replace(node.operator, instead),
    });
  };

  const early = (body: unknown) => {
    if (isNode(body) && body.type === "BlockStatement" && (body["body"] as Node[]).length > 0)
      found.push({
        operator: "return early",
        start: body.start + 1,
        end: body.start + 1,
        instead: " return;",
      });
  };

  visit(parseAst(source, { lang: file.endsWith("x") ? "tsx" : "ts" }) as unknown as Node);
  return found.sort((a, b) => a.start - b.start || a.end - b.end);
}

/** Whether a `+` joins texts. */
const isText = (node: Node): boolean =>
  node.type === "TemplateLiteral" ||
  (node.type === "Literal" && typeof node["value"] === "string") ||
  (node.type === "BinaryExpression" &&
    [node["left"], node["right"]].some((of) => isText(of as Node)));

/** A call whose result is not awaited, or an assignment. */
const isDroppable = ({ type, operator, argument }: Node): boolean =>
  type === "CallExpression" ||
  type === "AssignmentExpression" ||
  type === "UpdateExpression" ||
  (type === "UnaryExpression" && operator === "void" && isDroppable(argument as Node));

/** The source with one mutation. */
export const mutated = (source: string, { start, end, instead }: Mutation): string =>
  source.slice(0, start) + instead + source.slice(end);
