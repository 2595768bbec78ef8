// Renders a page of the console without a browser: a minimal document for Preact, and a gateway
// that responds from a table. Layout and focus are tested in Chromium (`test/console`).
import { vi } from "vitest";
import { until } from "../../kit/wait.ts";

// Preact's types require those of a browser, which this program does not have.
const untyped = (name: string): Promise<any> => import(name);
const { render, h } = await untyped("preact");

class TreeNode extends EventTarget {
  parentNode: TreeNode | null = null;
  childNodes: TreeNode[] = [];
  readonly localName: string;
  readonly nodeType: number;
  data = "";
  readonly attributes: { name: string; value: string }[] = [];
  readonly style = { setProperty: () => {} };

  constructor(name: string, type = 1) {
    super();
    this.localName = name;
    this.nodeType = type;
  }

  get firstChild(): TreeNode | null {
    return this.childNodes[0] ?? null;
  }
  get firstElementChild(): TreeNode | null {
    return this.childNodes.find(({ nodeType }) => nodeType === 1) ?? null;
  }
  get nextSibling(): TreeNode | null {
    const beside = this.parentNode?.childNodes ?? [];
    return beside[beside.indexOf(this) + 1] ?? null;
  }
  insertBefore(node: TreeNode, before: TreeNode | null): TreeNode {
    node.remove();
    node.parentNode = this;
    const at = before ? this.childNodes.indexOf(before) : this.childNodes.length;
    this.childNodes.splice(at, 0, node);
    return node;
  }
  appendChild(node: TreeNode): TreeNode {
    return this.insertBefore(node, null);
  }
  removeChild(node: TreeNode): void {
    node.remove();
  }
  remove(): void {
    const beside = this.parentNode?.childNodes;
    beside?.splice(beside.indexOf(this), 1);
    this.parentNode = null;
  }
  contains(node: TreeNode | null): boolean {
    for (let at = node; at; at = at.parentNode) if (at === this) return true;
    return false;
  }
  setAttribute(name: string, value: unknown): void {
    this.removeAttribute(name);
    this.attributes.push({ name, value: String(value) });
  }
  removeAttribute(name: string): void {
    const at = this.attributes.findIndex((each) => each.name === name);
    if (at >= 0) this.attributes.splice(at, 1);
  }

  /** Of a dialog. */
  showModal(): void {}
  close(): void {}

  /** With a space between elements. */
  get textContent(): string {
    if (this.nodeType === 3) return this.data;
    return this.childNodes.map((node) => node.textContent).join(" ");
  }
  all(name: string): TreeNode[] {
    const below = this.childNodes.flatMap((node) => node.all(name));
    return this.localName === name ? [this, ...below] : below;
  }
}

class TestDocument extends EventTarget {
  override addEventListener(...of: Parameters<EventTarget["addEventListener"]>): void {
    listenerCount++;
    super.addEventListener(...of);
  }
  override removeEventListener(...of: Parameters<EventTarget["removeEventListener"]>): void {
    listenerCount--;
    super.removeEventListener(...of);
  }
  readonly hidden = false;
  createElementNS(_: string, name: string): TreeNode {
    return new TreeNode(name);
  }
  createElement(name: string): TreeNode {
    return new TreeNode(name);
  }
  createTextNode(text: string): TreeNode {
    return Object.assign(new TreeNode("#text", 3), { data: text });
  }
}

/** Number of listeners that pages have on their documents. */
let listenerCount = 0;

/** Resolves when Preact has ended the effects of all removed pages, which happens in a later frame. */
export const pagesRemoved = (): Promise<void> => until(() => listenerCount === 0);

class NoLayout {
  observe(): void {}
  disconnect(): void {}
}

/** Prepares the globals of a browser. Called before a page is imported. */
export function asBrowser(address: string): void {
  const at = new URL(address, "http://127.0.0.1");
  vi.stubGlobal("document", new TestDocument());
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("location", { pathname: at.pathname, search: at.search, hash: "" });
  vi.stubGlobal("history", { replaceState() {}, pushState() {} });
  vi.stubGlobal("ResizeObserver", NoLayout);
}

export interface RenderedPage extends Disposable {
  /** Calls to the gateway, in order. */
  readonly asked: readonly (readonly [command: string, input: Record<string, unknown>])[];
  /** Text of the page, with single spaces. */
  text(): string;
  /** Cells of each row of each table. */
  rows(): string[][];
  /** Waits until the page contains this text. */
  shows(words: string): Promise<void>;
  /** Submits the only form. */
  submit(): void;
}

const plain = (text: string): string =>
  text
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ (?=[.,])/g, "")
    .trim();

/** `answers`: by command. */
export function rendered(
  page: unknown,
  answers: Readonly<Record<string, (input: any) => unknown>>,
  props: object = {},
): RenderedPage {
  const asked: [string, Record<string, unknown>][] = [];
  vi.stubGlobal("fetch", async (url: string, { body }: { body: string }) => {
    const command = url.slice("/admin/v1/".length);
    const input = JSON.parse(body) as Record<string, unknown>;
    asked.push([command, input]);
    const answer = answers[command];
    return answer
      ? Response.json(await answer(input))
      : Response.json({ error: { message: `no answer to ${command}` } }, { status: 404 });
  });
  const root = new TreeNode("main");
  render(h(page, props), root);
  const text = () => plain(root.textContent);
  return {
    asked,
    text,
    rows: () =>
      root
        .all("tr")
        .map(({ childNodes }) => childNodes.map(({ textContent }) => plain(textContent))),
    shows: (words) => until(() => text().includes(words)),
    submit: () =>
      void root.all("form")[0]!.dispatchEvent(new Event("submit", { cancelable: true })),
    [Symbol.dispose]: () => render(null, root),
  };
}
