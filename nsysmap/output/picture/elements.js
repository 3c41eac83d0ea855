"use strict";
// Elements of a page: found, and made; their text is only ever set as text.

/** @typedef {HTMLInputElement & Pick<HTMLDialogElement, "showModal" | "open">} Known an element, with what form elements, dialogs and <details> have too */

/**
 * The page's element of this id.
 * @param {string} id
 * @returns {Known}
 */
function byId(id) { return /** @type {any} */ (document.getElementById(id)); }

/**
 * All elements that the selector matches, in the page or in a part of it.
 * @param {string} selector
 * @param {ParentNode} [within]
 * @returns {Known[]}
 */
function allOf(selector, within = document) { return /** @type {any} */ ([...within.querySelectorAll(selector)]); }

/**
 * What an event came from.
 * @param {Event} event
 * @returns {Known}
 */
function targetOf(event) { return /** @type {any} */ (event.target); }

/**
 * An HTML element; its text is only ever set as text.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {string | number | null} [text]
 * @param {Element | DocumentFragment | null} [parent]
 * @param {string} [className]
 * @returns {HTMLElementTagNameMap[Name]}
 */
function element(name, text, parent, className) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = String(text);
  if (className) made.className = className;
  if (parent) parent.append(made);
  return made;
}
