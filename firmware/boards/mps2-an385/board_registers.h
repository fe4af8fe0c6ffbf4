/* Arm MPS2 with FPGA image AN385: Cortex-M3 (DAI 0385). */
#ifndef ENTRAIN_BOARD_REGISTERS_H
#define ENTRAIN_BOARD_REGISTERS_H

#define BOARD_NAME "mps2-an385"
#define BOARD_HZ   25000000u

#define BOARD_UART                   0x40004000u
#define BOARD_UART_RECEIVE_INTERRUPT 0u
#define BOARD_GPIO                   0x40010000u

#endif
