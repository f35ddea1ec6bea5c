import { options, render } from 'preact'
import { Page } from './page.tsx'

// Renders in a task apart from that which parses a message of 5,000 holders.
options.debounceRendering = setTimeout
const at = document.querySelector('#page')
if (at) render(<Page />, at)
