// Lays graphs out beside the page, so that the page answers while it waits.
import { layout } from "./layout.js";

self.onmessage = ({ data: { ticket, nodes, edges } }) => {
  const { x, y } = layout(nodes, edges);
  self.postMessage({ ticket, x, y }, [x.buffer, y.buffer]);
};
